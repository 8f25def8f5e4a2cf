/* The states of conditions on this node: RUN_DIR/netem, root's alone, one file per job, under one
 * lock. What the file holds: docs/formats.md part 9. */
#ifndef STEELYARD_NETEM_STATE_H
#define STEELYARD_NETEM_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_LOCK_PATIENCE_MS 10000
#define SY_STATE_NAME_SIZE  256

struct sy_states {
	int dir, lock;
	json_t *all; /* from the file's name to its document; what cannot be read is null */
};

/* Open the folder, take its lock, read all states. 1: there is no folder and `make` is false. */
int sy_states_open(const char *run_dir, bool make, struct sy_states *states, struct sy_error *err);
void sy_states_close(struct sy_states *states);
#define cleanup_states __attribute__((cleanup(sy_states_close)))
#define SY_STATES_NONE ((struct sy_states){.dir = -1, .lock = -1})

/* "NODE.JOB.json" or "NODE.JOB.done.json": 0, or -1 when node or job are no words for files. */
int sy_state_make_name(char *name, const char *node, const char *job_id, bool done,
		       struct sy_error *err);

/* Write a document whole or not at all, fsync and rename; a state also enters `all`. */
int sy_state_save(struct sy_states *states, const char *name, json_t *document,
		  struct sy_error *err);
int sy_state_remove(struct sy_states *states, const char *name, struct sy_error *err);

/* Write the owner into a state: the watched process, the boot, the network namespace. -1: that
 * cannot be read now, and the state is unchanged. */
int sy_state_set_owner(json_t *state, pid_t watch, struct sy_error *err);

enum sy_owner {
	SY_OWNER_LIVES,
	SY_OWNER_GONE,		  /* to be undone */
	SY_OWNER_NOT_HERE,	  /* another network namespace, which still exists */
	SY_OWNER_AND_KERNEL_GONE, /* rebooted, or its namespace is gone: nothing to undo */
};
enum sy_owner sy_state_find_owner(const json_t *state);

/* The fields that are in the state alone, taken away for the record. */
void sy_state_remove_private(json_t *state);

#endif
