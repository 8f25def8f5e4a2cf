/* Memory of the job: its cgroup's figure at each sample and once a second at least; without a
 * cgroup the resident sets of its living processes. The peak is the largest figure, and no less
 * than the largest single process. memory_source names what the peak comes from. */
#ifndef STEELYARD_SAMPLER_MEMORY_H
#define STEELYARD_SAMPLER_MEMORY_H

#include "sampler/job_state.h"

#define SY_MEMORY_PERIOD_US 1000000

/* Into the line. `resident_bytes`: of its living processes, by `source`; read where there is no
 * cgroup. */
void sy_job_read_memory(struct sy_job *job, int64_t resident_bytes, enum sy_source source,
			struct sy_line *line, struct sy_status *status);

/* The same, of its cgroup alone, between two samples that are further apart than
 * SY_MEMORY_PERIOD_US. */
void sy_job_read_memory_between(const struct sy_job *job, struct sy_status *status);

/* The charge, which includes page cache, has its peak in the group. */
void sy_job_read_charged_peak(const struct sy_job *job, struct sy_status *status);

/* So much was resident at some time. */
void sy_job_note_memory(struct sy_status *status, int64_t bytes, enum sy_source source);

#endif
