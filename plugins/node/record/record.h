/* The record of a job on a node (docs/formats.md part 1) as a JSON document. */
#ifndef STEELYARD_RECORD_RECORD_H
#define STEELYARD_RECORD_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters/node.h"
#include "base/document.h"
#include "record/sampling.h"

/* What is known at the job's start. */
struct sy_head {
	const struct sy_sampling *sampling;
	const struct sy_node *node;
	int64_t start_unix_s;
	const char *samples_file;					/* NULL: no samples */
	int64_t dropped_rx[SY_MAX_DEVICES], dropped_tx[SY_MAX_DEVICES]; /* at the start */
	json_t *probe;							/* NULL: not made yet */
};

/* The record as it is at the start: complete is false, totals are null. */
json_t *sy_record_new(const struct sy_head *head);

/* Put in the totals of all samples so far. */
void sy_record_totals(json_t *record, const struct sy_sums *sums);

/* Why the record has no "cache" or "network_conditions": what was told, else `otherwise`. */
const char *sy_record_unmet(const struct sy_sampling *sampling, const char *field,
			    const char *otherwise);

/* Complete, when `reason` is NULL. */
void sy_record_complete(json_t *record, const char *reason);

/* The labels of zones and devices, as they stand in a record. */
void sy_record_labels(const json_t *record, struct sy_labels *labels);

#endif
