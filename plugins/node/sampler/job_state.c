#include "sampler/job_state.h"

void sy_job_set(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
		int64_t value)
{
	line->cell[cell] = value > before->cell[cell] ? value : before->cell[cell];
}

void sy_job_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns)
{
	sy_in_kernel_root(job->kernel, pid, faults, since_ns);
	sy_processes_root(&job->processes, pid);
	if (faults >= 0) /* a step's daemon */
		sy_processes_promise(&job->processes, pid);
}

bool sy_job_is_left_alone(const struct sy_job *job, bool end)
{
	return end && job->period_us && !job->unseen.known && !job->end_is_told && !job->exact;
}

bool sy_job_all_told(const struct sy_job *job)
{
	return job->processes.done_roots > 0 && job->processes.open_roots == 0;
}

bool sy_job_processes_are_known(const struct sy_job *job)
{
	return job->period_us > 0 || job->exact || job->kernel_counts || sy_job_all_told(job);
}

struct sy_usage sy_job_usage(struct sy_job *job, bool end)
{
	struct sy_usage shown = sy_processes_total(&job->processes);

	job->kernel_counts = sy_in_kernel_read(job->kernel, end) &&
			     (!(end || sy_job_all_told(job)) || !job->kernel->now.settled ||
			      sy_in_kernel_holds(job->kernel, &shown));
	return job->kernel_counts ? sy_in_kernel_usage(job->kernel) : shown;
}
