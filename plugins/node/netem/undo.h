/* Undoing, for callers that hold the lock (state.h), and the placements of a state. */
#ifndef STEELYARD_NETEM_UNDO_H
#define STEELYARD_NETEM_UNDO_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "netem/kernel/tc_batch.h"
#include "netem/state.h"

/* A placement as in the state under undo.places, and back. In addition to the plan's fields it
 * has `before` (tc's text), `restore` (sy_qdiscs_to_json), `offloads` (names that were on) and
 * `gso_max_segs` (the earlier value; null: unchanged). */
json_t *sy_placement_to_json(const struct sy_placement *placement);
void sy_placement_from_json(const json_t *json, struct sy_placement *placement);

/* Another state that shapes the same device; its place, or NULL. */
json_t *sy_placement_find_shared(const struct sy_states *states, const char *but,
				 const char *device);

/* `tc qdisc show dev DEVICE`, allocated. */
char *sy_tree_read(const char *device, struct sy_error *err);

/* Those lines of it that are about our own qdisc of a place, allocated; "" when it is not there. */
char *sy_tree_find_own(const char *tree, const struct sy_placement *placement);

/* Put everything of a state back, whatever part of it there is: 0, `undone` and `undo_s` are set;
 * -1: something of ours is still there. The file is not touched. */
int sy_undo_tree(struct sy_states *states, const char *name, json_t *state, struct sy_error *err);

/* The same, then the finished document is left as NODE.JOB.done.json and the state removed. */
int sy_undo_state(struct sy_states *states, const char *name, const char *by, struct sy_error *err);

/* Note that another process than the job's end undoes it: the run is invalid. */
void sy_undo_mark_early(json_t *state, const char *by);

/* Undo what nobody owns any more: how many, or -1 when one could not be. */
int sy_undo_stale(struct sy_states *states, const char *by, struct sy_error *err);

#endif
