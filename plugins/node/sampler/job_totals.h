/* What the job has used, from its cgroup, the kernel's count or its steps' reports, into a line of
 * samples. */
#ifndef STEELYARD_SAMPLER_JOB_TOTALS_H
#define STEELYARD_SAMPLER_JOB_TOTALS_H

#include "sampler/job_state.h"

/* Totals do not go down, whatever the sources: SY_UNKNOWN is below every value. */
void sy_job_set(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
		int64_t value);

/* Every step that came here has reported its final counters. */
bool sy_job_all_reported(const struct sy_job *job);

/* At rate 0 no sample sees processes that come and go: only what steps have reported is known. */
bool sy_job_processes_are_known(const struct sy_job *job);

/* Read the kernel's count, else the sum of the last sample of its processes. */
struct sy_usage sy_job_usage(struct sy_job *job, bool end);

/* `total`: as sy_job_usage; `group_us`: its cgroup, or SY_UNKNOWN. */
void sy_job_read_cpu(struct sy_job *job, bool end, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status);
void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status);

/* Where its CPU is read. */
void sy_job_report_sources(const struct sy_job *job, struct sy_status *status);

#endif
