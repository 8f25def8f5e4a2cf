#include "sampler/memory.h"

void sy_job_note_memory(struct sy_status *status, int64_t bytes, enum sy_source source)
{
	if (sy_sums_peak(&status->sums, bytes))
		status->memory_source = source;
}

void sy_job_read_memory_between(const struct sy_job *job, struct sy_status *status)
{
	sy_job_note_memory(status, sy_cgroup_memory_bytes(&job->cgroup), job->cgroup.memory_source);
}

void sy_job_read_memory(struct sy_job *job, int64_t resident_bytes, enum sy_source source,
			struct sy_line *line, struct sy_status *status)
{
	int64_t bytes = resident_bytes;

	if (!job->period_us)
		return; /* of a moment or two: no maximum */
	if (job->cgroup.memory_source != SY_SOURCE_NONE) {
		bytes = sy_cgroup_memory_bytes(&job->cgroup);
		source = job->cgroup.memory_source;
	}
	if (bytes == SY_UNKNOWN)
		return;
	line->cell[SY_MEMORY] = bytes;
	sy_job_note_memory(status, bytes, source);
}

void sy_job_read_charged_peak(const struct sy_job *job, struct sy_status *status)
{
	int64_t bytes = sy_cgroup_charged_peak_bytes(&job->cgroup);

	if (bytes > status->charged_peak_bytes) /* SY_UNKNOWN is below every number */
		status->charged_peak_bytes = bytes;
}
