/* The cgroup of the job that is sampled: what it has counted, and from when on. */
#ifndef STEELYARD_SAMPLER_JOB_CGROUP_H
#define STEELYARD_SAMPLER_JOB_CGROUP_H

#include "sampler/job_state.h"

/* CPU time that it has counted, µs, or SY_UNKNOWN. */
int64_t sy_job_cgroup_us(struct sy_job *job);

/* The same, where it may have gone meanwhile: then it is `before_us`. */
int64_t sy_job_cgroup_last_us(struct sy_job *job, int64_t before_us, struct sy_status *status);

/* What its processes have used until now is the job's, the rest that it has counted is not. */
void sy_job_cgroup_begin_counting(struct sy_job *job);

/* A step tells of the group before anybody in it is the user's program and could be asked, and on
 * version 1 before every controller has it. Returns whether somebody was asked now. */
bool sy_job_cgroup_check(struct sy_job *job);

/* Returns whether the groups of steps tell from now on. */
bool sy_job_cgroup_find_steps(struct sy_job *job);

#endif
