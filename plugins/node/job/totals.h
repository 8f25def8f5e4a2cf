/* What a node's sampler has counted so far. Pure: no scheduler in here. */
#ifndef STEELYARD_JOB_TOTALS_H
#define STEELYARD_JOB_TOTALS_H

#include <stdbool.h>
#include <time.h>

#include "base/line.h"

/* Whether the job has the node for itself. */
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

/* What cannot have been counted is no number: records are their users' to change. */
bool sy_is_countable(double value);

/* The sampler's answer to `totals`. False when it is not that. */
bool sy_totals_from_json(struct sy_totals *totals, const char *text);

#endif
