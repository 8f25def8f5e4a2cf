/* What samplers have counted so far, on one node or summed over several. Pure: no Slurm in here. */
#ifndef STEELYARD_SLURM_TOTALS_H
#define STEELYARD_SLURM_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/quantity.h"

/* Whether the job has a node, or all of its nodes, for itself. */
enum sy_exclusive { SY_NOT_SAID, SY_SHARED, SY_ALONE };

struct sy_totals {
	bool known[SY_TOTALS]; /* false: null, never 0 */
	double value[SY_TOTALS];
	bool idle; /* no step of the job has come to this node */
	enum sy_exclusive exclusive;
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

/* The same from a file that is still written to. */
bool sy_totals_from_csv_file(struct sy_totals *totals, int folder, const char *name);

/* One more node: a total is known only as long as every node on which a step was knows it. */
void sy_job_totals_add(struct sy_job_totals *job, const struct sy_totals *node);

struct sy_other_nodes {
	const char *folder, *own_node;
	time_t since; /* of this start of the job: START at least that */
	/* When our own sampler started: what had ended by then is of an earlier start of a job that
	 * was requeued. */
	time_t own_start;
	/* Last written to at least then, unless the record is finished: a node that was lost is
	 * not weighed. */
	time_t fresh;
	int limit_ms; /* gives up then: a shared file system may be slow */
};

/* Add every other node that has samples NODE.START.csv in the folder. */
void sy_job_totals_add_others(struct sy_job_totals *job, const struct sy_other_nodes *others);

/* A record NODE.START.json, to be freed; NULL: none, or not a file of a bounded size. It belongs to
 * the job's user, the folder to root: no link, no pipe. */
char *sy_read_record(int folder, const char *name);

/* START of the newest NODE.START.csv (or .json: `ending`) of a node; 0: there is none. */
time_t sy_newest_start(const char *folder, const char *node, const char *ending);

#endif
