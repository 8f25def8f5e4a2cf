/* What the job has used, from its cgroup, the kernel's count or its processes, into a line of
 * samples. */
#ifndef STEELYARD_SAMPLER_JOB_TOTALS_H
#define STEELYARD_SAMPLER_JOB_TOTALS_H

#include "sampler/job_state.h"

/* `total`: what its processes have used; `group_us`: its cgroup, or SY_UNKNOWN. */
void sy_job_read_cpu(struct sy_job *job, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status);
void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status);

/* Where its CPU is read. */
void sy_job_tell_sources(const struct sy_job *job, struct sy_status *status);

#endif
