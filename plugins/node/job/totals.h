/* What samplers have counted so far, on one node or summed over several. Pure: no scheduler in
 * here. */
#ifndef STEELYARD_JOB_TOTALS_H
#define STEELYARD_JOB_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/quantities.h"

/* Whether the job has a node, or all of its nodes, for itself. */
enum sy_exclusive { SY_NOT_SAID, SY_SHARED, SY_ALONE };

struct sy_totals {
	bool known[SY_TOTALS]; /* false: null, never 0 */
	double value[SY_TOTALS];
	bool no_gpus; /* on the node: nothing to tell of them */
	bool idle;    /* no step of the job has come to this node */
	enum sy_exclusive exclusive;
	bool other_networks; /* programs of the job began in another network namespace */
	time_t start;	     /* in the names of the sampler's files; 0: not told */
};

struct sy_job_totals {
	unsigned nodes_weighed;
	unsigned nodes_idle; /* of them: they add nothing to what processes use */
	unsigned unknown_on[SY_TOTALS];
	bool silent;	      /* the first node's sampler did not answer: no total is the job's */
	struct sy_totals sum; /* elapsed and memory: of the largest node */
};

/* The sampler's answer to `totals`. False when it is not that. */
bool sy_totals_from_json(struct sy_totals *totals, const char *text);

/* A CSV of samples: its header line, and text that ends with its last line. The largest memory is
 * not in one line: unknown, unless `text` is the whole file. */
bool sy_totals_from_csv(struct sy_totals *totals, const char *header, const char *text,
			bool whole_file);

/* One more node: a total is known only as long as every node on which a step was knows it. */
void sy_job_totals_add(struct sy_job_totals *job, const struct sy_totals *node);

#endif
