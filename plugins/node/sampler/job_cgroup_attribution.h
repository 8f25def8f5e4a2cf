/* CPU of the job's cgroup: from when on it counts for the job, and what it has counted since. Of
 * Slurm's groups of version 2 those of the tasks are read (counters/step_cgroups.h). */
#ifndef STEELYARD_SAMPLER_JOB_CGROUP_ATTRIBUTION_H
#define STEELYARD_SAMPLER_JOB_CGROUP_ATTRIBUTION_H

#include "sampler/job_state.h"

/* CPU time that it has counted, µs, or SY_UNKNOWN. */
int64_t sy_job_cgroup_us(struct sy_job *job);

/* The same, where the group may have been removed meanwhile: then it is `before_us`. */
int64_t sy_job_cgroup_last_us(struct sy_job *job, int64_t before_us, struct sy_status *status);

/* What its processes have used until now is the job's, the rest that it has counted is not. */
void sy_job_cgroup_begin_counting(struct sy_job *job);

/* A step announces the group before a process in it is the user's program, and on version 1
 * before every controller has it. A process of the job shows which controllers have it there; the
 * groups of other controllers are leftovers of an earlier job of that id. Returns whether a
 * process was checked now. */
bool sy_job_cgroup_check(struct sy_job *job);

/* Returns whether the groups of steps are read from now on, and were not before. */
bool sy_job_cgroup_find_steps(struct sy_job *job);

#endif
