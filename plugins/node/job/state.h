/* The state of a job on this node, so that a later process can end the job:
 * RUN_DIR/job/NODE.JOBID.json, locked while a process works on it. */
#ifndef STEELYARD_JOB_STATE_H
#define STEELYARD_JOB_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct sy_job_state {
	int folder, fd;
	char name[512];
	json_t *json; /* an object, empty when nothing was begun */
	double age_s; /* since it was written */
};

#define SY_JOB_STATE_NONE ((struct sy_job_state){.folder = -1, .fd = -1})

/* Open and lock it, waiting at most `patience_ms`. 1: no such state (only without `make`); -1:
 * not available. */
int sy_job_state_open(struct sy_job_state *state, const char *run_dir, const char *node,
		      const char *job_id, bool make, int patience_ms, struct sy_error *err);

/* Write it as it is. */
int sy_job_state_save(struct sy_job_state *state, struct sy_error *err);

/* The job is over. */
void sy_job_state_remove(struct sy_job_state *state);

void sy_job_state_close(struct sy_job_state *state);

#define cleanup_job_state __attribute__((cleanup(sy_job_state_close)))

/* A process, kept so that a later one of the same id is not taken for it. */
void sy_job_state_set_process(struct sy_job_state *state, const char *key, pid_t pid);
pid_t sy_job_state_process(const struct sy_job_state *state, const char *key); /* 0: it is gone */
bool sy_job_state_is_process(const struct sy_job_state *state, const char *key, pid_t pid);

/* Whether any process of the job is on this node, by its marks. */
bool sy_job_state_job_lives(const struct sy_job_state *state);

/* The ids of a node's jobs that have a state, as a list. */
json_t *sy_job_states(const char *run_dir, const char *node);

#endif
