/* What the job has used, into a line of samples: CPU, I/O and memory, each from its one source or
 * its fallback (docs/sampler.md has the table). Totals do not go down from one sample to the next,
 * whatever the sources. */
#ifndef STEELYARD_SAMPLER_JOB_USAGE_H
#define STEELYARD_SAMPLER_JOB_USAGE_H

#include "sampler/job_state.h"

/* The larger of `value` and the cell before; SY_UNKNOWN is below every value. */
void sy_job_raise_total(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
			int64_t value);

/* The same of the four of I/O. */
void sy_job_raise_io(struct sy_line *line, const struct sy_line *before,
		     const struct sy_usage *used);

/* Every step that came here has reported its final counters. */
bool sy_job_all_reported(const struct sy_job *job);

/* Read the kernel's count, which sets `by_kernel`; where it does not hold, returns the sum of the
 * last sample of the job's processes. */
struct sy_usage sy_job_read_usage(struct sy_job *job, enum sy_reading reading);

/* `total`: as sy_job_read_usage; `group_us`: CPU of the job's cgroup, or SY_UNKNOWN. */
void sy_job_read_cpu(struct sy_job *job, bool end, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status);
void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status);

/* Where the job's CPU is read. */
void sy_job_report_cpu_source(const struct sy_job *job, struct sy_status *status);

/* --- memory: the cgroup's figure at each sample and once a second at least; without a cgroup the
 * resident sets of living processes. The peak is the largest figure, and no less than the largest
 * single process. --- */

#define SY_MEMORY_PERIOD_US 1000000

/* `resident_bytes`: of its living processes, by `source`; used where there is no cgroup. */
void sy_job_read_memory(struct sy_job *job, int64_t resident_bytes, enum sy_source source,
			struct sy_line *line, struct sy_status *status);

/* The cgroup's alone, between two samples that are further apart than SY_MEMORY_PERIOD_US. */
void sy_job_read_memory_between(const struct sy_job *job, struct sy_status *status);

/* The peak of the cgroup's charge, which includes page cache. */
void sy_job_read_charged_peak(const struct sy_job *job, struct sy_status *status);

/* So much was resident at some time. */
void sy_job_note_memory(struct sy_status *status, int64_t bytes, enum sy_source source);

#endif
