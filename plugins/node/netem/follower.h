/* Conditions with more than one step: the process that puts one step after another into the kernel,
 * and what it leaves in the document. A condition with one step has no such process. */
#ifndef STEELYARD_NETEM_FOLLOWER_H
#define STEELYARD_NETEM_FOLLOWER_H

#include "netem/condition.h"

/* Under the lock, once the conditions hold: record their first step and start the processes. From
 * then on `trace` of the document grows with each step (docs/formats.md part 9). A process ends by
 * itself when the state has another owner or is gone, or its owner is. */
int sy_conditions_follow(struct sy_conditions *conditions, struct sy_error *err);

/* At the end: a condition whose steps were not made as its trace has it is invalid, with the
 * reason; `held_s` of the trace, and a note, where its last line held longer than the trace is
 * long. */
void sy_conditions_end_steps(json_t *state, double now_boot_s);

#endif
