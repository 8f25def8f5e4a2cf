/* A job ends on this node, told or found out. */
#ifndef STEELYARD_JOB_END_H
#define STEELYARD_JOB_END_H

#include <stdbool.h>

#include "job/config.h"
#include "job/state.h"

struct sy_job_end {
	struct sy_job_config config;
	const char *program, *job_id, *node, *exit_status;
	bool exclusive; /* told only now */
};

/* Undo its conditions, let the sampler end, wait a moment for the record. The totals as one line of
 * JSON, to be freed (docs/formats.md part 5). */
char *sy_job_end(const struct sy_job_end *job);

/* End what a job has left without anybody's word: the record says so. The state is ours, and empty
 * then. */
void sy_job_abandon(const struct sy_job_end *job, struct sy_job_state *state, const char *why);

/* The same at a begin that was refused: the record is whole. */
void sy_job_give_up(const struct sy_job_end *job, struct sy_job_state *state);

struct sy_job_sweep {
	struct sy_job_end job; /* without an id */
	bool knows_alive;      /* `alive` has all jobs of this node */
	const char *const *alive;
	int alive_count;
};

/* What is left of jobs that are gone is undone and finished. */
void sy_job_sweep(const struct sy_job_sweep *sweep);

/* Of all jobs, without a look at their states: conditions, sockets, records. */
void sy_job_sweep_rest(const struct sy_job_end *job);

#endif
