/* The sampling child reads the job: each sample, and where the readings begin. */
#ifndef STEELYARD_SAMPLER_JOB_H
#define STEELYARD_SAMPLER_JOB_H

#include "sampler/job_state.h"

/* Its processes are the descendants of `pid`. `faults`: as sy_in_kernel_root. */
void sy_job_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns);

/* The cgroup's files have been opened: what its processes have used is the job's, the rest that it
 * has counted is not; from here on both must agree. */
void sy_job_count_from_here(struct sy_job *job, int root);

/* A step has told of the group: its daemon is there now. */
void sy_job_step_is_there(struct sy_job *job);

void sy_job_read(struct sy_job *job, enum sy_look look, struct sy_line *line,
		 struct sy_status *status);

/* Of its CPU time that in programs and that in the kernel, where somebody tells. */
void sy_job_split(struct sy_job *job, struct sy_status *status);

/* Whose sockets the job's are, or SY_ANY_USER: a command that root starts may become any user. */
uid_t sy_job_user(const struct sy_sampling *sampling);

#endif
