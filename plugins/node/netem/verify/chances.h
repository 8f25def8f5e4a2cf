/* What chance was asked to do to packets, and how often the kernel says that it did: loss,
 * duplicate, corrupt, reorder. What it does not count is not known, and the document says so. */
#ifndef STEELYARD_NETEM_VERIFY_CHANCES_H
#define STEELYARD_NETEM_VERIFY_CHANCES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netem/spec/spec.h"

/* Lost packets (with ecn=: lost or marked) and of how many. */
struct sy_counted {
	int64_t hits, packets;
	int64_t least; /* so many there were at least: less than `packets` where some may have been
			* counted twice */
};

struct sy_counted sy_netem_count_hits(const json_t *counters, const struct sy_netem *spec);

/* `loss` of the document, or null; why, where there were packets. */
void sy_netem_record_loss(json_t *conditions, const struct sy_counted *count);

/* `duplicate`, `corrupt`, `reorder` of the document, each where it was asked for: `{achieved, low,
 * high, packets}`, or null with the reason in `missing`. -1: one is beyond chance (99.9 %),
 * `reason` is the sentence; with no counter nothing is judged. */
int sy_netem_judge_chances(json_t *conditions, const struct sy_netem *spec, char *reason,
			   size_t size);

#endif
