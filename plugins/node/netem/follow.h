/* The process that changes a condition's link as its trace says, and what it leaves in the state.
 */
#ifndef STEELYARD_NETEM_FOLLOW_H
#define STEELYARD_NETEM_FOLLOW_H

#include "netem/condition.h"
#include "netem/trace.h"

/* Start it: from then on `trace` of the state, `{name, sha256, repeats, lines, length_s, steps,
 * first, now, least_loss, most_loss, told[], failed, began_boot_s, next_boot_s, held_s}`, grows
 * with each step: told[] has `{number, unix_s, late_s, applied, delay_s, rate_bit_per_s, loss}` of
 * the first ones, `applied` being what the kernel reports back. It ends by itself once the state
 * has another owner or is gone, or its owner is. */
int sy_condition_follow(const struct sy_condition *condition, const struct sy_trace *trace,
			struct sy_error *err);

/* Before the first step: `trace` of the document. */
json_t *sy_follow_document(const struct sy_netem *spec, const struct sy_trace *trace);

/* At the end: `spec` becomes what holds now, and the document says why it is not as the trace has
 * it (a step that was due and not made, or not made as asked): -1. */
int sy_follow_end(const json_t *state, double now_boot_s, struct sy_netem *spec,
		  struct sy_error *err);

/* At the end, too: `held_s`, how long the last line held after it was due, and a note of it; null
 * where the trace was not over, or begins again. */
void sy_follow_held(json_t *state, double now_boot_s);

#endif
