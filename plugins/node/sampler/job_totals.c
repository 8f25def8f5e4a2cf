#include "sampler/job_totals.h"

#include "base/clock.h"
#include "sampler/group.h"

#include <time.h>

/* What the roots' final counters tell is the kernel's own sum, however fast it has come. */
static int64_t believed_cpu_us(struct sy_job *job, const struct sy_usage *total, int64_t *held_us)
{
	struct sy_processes *processes = &job->processes;
	int64_t found = total->use[SY_USE_CPU_NS] / 1000;
	int64_t told = sy_processes_told(processes).use[SY_USE_CPU_NS] / 1000;
	int64_t cpu_us;

	*held_us = 0;
	if (job->exact)
		return found;
	cpu_us = sy_cpu_guard_tell(&job->guard, found, processes->since_us, processes->now_us,
				   sy_now_us(CLOCK_MONOTONIC));
	processes->since_us = processes->now_us;
	if (sy_job_all_told(job) && told > cpu_us)
		cpu_us = told;
	*held_us = job->guard.held_us ? found - cpu_us : 0;
	return cpu_us;
}

void sy_job_tell_sources(const struct sy_job *job, struct sy_status *status)
{
	status->cpu_source = job->cgroup.cpu_source ? job->cgroup.cpu_source : SY_SOURCE_PROCESSES;
	status->unseen.known &= job->unseen.known;
}

#define SLACK_US 100000
#define SHARE	 50 /* one part in so many */

/* The kernel counts a job without the daemons of its steps, who may lie in its group, and with
 * those who were moved out of it. */
static bool kernel_has_cpu(const struct sy_job *job, int64_t group_us, const struct sy_usage *total)
{
	int64_t total_us = total->use[SY_USE_CPU_NS] / 1000;

	return job->kernel_counts &&
	       (job->cgroup.cpu_source == SY_SOURCE_NONE || job->unseen.daemons ||
		group_us == SY_UNKNOWN || total_us - total_us / SHARE > group_us + SLACK_US);
}

void sy_job_read_cpu(struct sy_job *job, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;

	if (job->cgroup.cpu_source != SY_SOURCE_NONE && !job->exact)
		sy_group_compare(job, total, group_us, status);
	sy_job_tell_sources(job, status);
	if (kernel_has_cpu(job, group_us, total)) {
		status->group_gone = false;
		status->cpu_source = SY_SOURCE_BPF;
		sy_job_set(line, before, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
	} else if (job->cgroup.cpu_source != SY_SOURCE_NONE && !job->exact) {
		if (group_us == SY_UNKNOWN && sy_job_all_told(job)) /* gone with the last step */
			sy_job_set(line, before, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
		else
			sy_job_set(line, before, SY_CPU,
				   sy_group_cpu_of_tasks_us(job, total, group_us));
	} else if (sy_job_processes_are_known(job)) {
		sy_job_set(line, before, SY_CPU, believed_cpu_us(job, total, &status->cpu_held_us));
	}
}

void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status)
{
	status->io_source = job->kernel_counts	   ? SY_SOURCE_BPF
			    : sy_job_all_told(job) ? SY_SOURCE_REAPED
						   : SY_SOURCE_PROCESSES;
	status->io_unreadable = job->processes.deaf && !sy_job_all_told(job) && !job->kernel_counts;
	status->io_unseen = (end || sy_job_all_told(job)) &&
			    (sy_unseen_matters(&job->unseen) || status->unwaited_io);
	for (int i = 0; i < SY_USES; i++)
		status->io_least[i] = total->use[i];
	if (status->io_unreadable || status->io_unseen || !sy_job_processes_are_known(job))
		return;
	for (int i = SY_USE_RCHAR; i <= SY_USE_WRITE; i++)
		sy_job_set(line, &status->sums.last,
			   (enum sy_cell)((int)SY_RCHAR + i - (int)SY_USE_RCHAR), total->use[i]);
}
