/* A job that the kernel counts: nobody goes through its processes. Roots alone are known, for what
 * they tell at their ends; the cgroup is held against the kernel's sum at the end. */
#ifndef STEELYARD_SAMPLER_COUNTED_H
#define STEELYARD_SAMPLER_COUNTED_H

#include "sampler/job_state.h"

/* As sy_job_read; false: the kernel does not count it, or no more, and its processes are to be
 * read. */
bool sy_job_read_counted(struct sy_job *job, enum sy_look look, struct sy_line *line,
			 struct sy_status *status);

/* Of its processes that have ended, where the kernel counts, if more than what was seen. */
void sy_job_tell_largest(const struct sy_job *job, enum sy_look look, struct sy_status *status);

/* What the kernel's timer has read, into a line that repeats the last one. */
void sy_job_set_tick(struct sy_job *job, const struct sy_bpf_tick *tick, struct sy_line *line,
		     struct sy_status *status);

/* What is read once a second, when ticks are taken. */
void sy_job_read_meanwhile(struct sy_job *job, struct sy_line *line, struct sy_status *status);

/* The kernel still counts all of it, as far as is known without asking. */
bool sy_job_stays_counted(struct sy_job *job);

#endif
