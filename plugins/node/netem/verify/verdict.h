/* Whether a run may be averaged: the document of docs/formats.md part 9 in, a verdict in it out.
 *
 * Nothing is measured here. What the document does not have is not judged. The rules and their
 * formulas: docs/netem.md, "What is verified". */
#ifndef STEELYARD_NETEM_VERIFY_VERDICT_H
#define STEELYARD_NETEM_VERIFY_VERDICT_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <stdbool.h>

#include "netem/spec/spec.h"

#define SY_MEASURE_COUNT 25 /* echo requests where nothing else is said */

/* Set `loss`, `valid`, `invalid_reason`, `notes`. Whether it is undone is not judged by round-trip
 * times: tc's tree alone says so (netem/undo.h). May be called again as the document grows (after
 * applying, at the end): a run once found invalid stays so, with its first reason; one set by the
 * caller stays as well.
 *
 * Read are `rtt`, `counters`, and of `devices[]`: `device`, `kernel`, and `kernel_end`, what tc
 * says of our own qdisc there at the end in the same words; null: it is gone; absent: not known. */
void sy_netem_judge(json_t *conditions, const struct sy_netem *spec);

/* One more try at this moment (before, during_start, during_end, after): whatever holds up echoes
 * adds to them, so the fastest try is kept and the others are dropped. Steals `rtt`. */
void sy_netem_keep_fastest(json_t *conditions, const struct sy_netem *spec, const char *moment,
			   json_t *rtt);

/* Whether what was measured at this moment is within the tolerance, or is not judged; `before`:
 * whether the median lies close to the minimum. */
bool sy_netem_is_rtt_tolerated(json_t *conditions, const struct sy_netem *spec, const char *moment);

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
