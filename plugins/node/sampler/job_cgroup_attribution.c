#include "sampler/job_cgroup_attribution.h"

#include "counters/process_alive.h"
#include "sampler/job_usage.h"

int64_t sy_job_cgroup_us(struct sy_job *job)
{
	int64_t counted = sy_cgroup_cpu_us(&job->cgroup);

	return counted == SY_UNKNOWN || !job->by_steps ? counted
						       : sy_step_groups_cpu_us(&job->steps);
}

static void close_stale_groups(struct sy_job *job)
{
	bool cpu1 = job->cgroup.cpu_source == SY_SOURCE_CGROUP1;
	bool memory1 = job->cgroup.memory_source == SY_SOURCE_CGROUP1;

	if (sy_processes_locate(&job->processes, cpu1 ? "cpuacct" : "") == SY_ELSEWHERE) {
		sy_cgroup_close_cpu(&job->cgroup);
		job->group_counts = false;
	}
	if (sy_processes_locate(&job->processes, memory1 ? "memory" : "") == SY_ELSEWHERE)
		sy_cgroup_close_memory(&job->cgroup);
}

#define ROUNDING_US 50000

/* How much of what the group has counted is the job's, whose processes show `total_us`. */
static int64_t own_part_us(const struct sy_job *job, int64_t found_us, int64_t total_us)
{
	/* A PBS prologue runs in the group before anything of the job does: all that the
	 * processes do not show is the prologue's. */
	int64_t rounding_us = job->processes.starter.pid ? 0 : ROUNDING_US;
	/* The steps' groups do not have the extern step's start: so little is that start alone. */
	int64_t earlier_us = job->by_steps && job->counted_us <= ROUNDING_US ? 0 : job->counted_us;

	if (job->counted_us != SY_UNKNOWN)
		return found_us > earlier_us ? found_us - earlier_us : 0;
	/* Living processes have waited for others, whose times are rounded to clock ticks. So
	 * little beyond them is that rounding, and no earlier job's. */
	return found_us < total_us + rounding_us ? found_us : total_us;
}

/* The group is read before and after the clocks of processes that may be running in it. */
void sy_job_cgroup_begin_counting(struct sy_job *job)
{
	int64_t before_us, after_us, total_us, found_us, used_us;

	before_us = sy_job_cgroup_us(job);
	total_us = sy_job_read_usage(job, SY_READING_DUE).use[SY_USE_CPU_NS] / 1000;
	after_us = sy_job_cgroup_us(job);
	if (job->cgroup.cpu_source == SY_SOURCE_NONE || before_us == SY_UNKNOWN ||
	    after_us == SY_UNKNOWN)
		return;
	found_us = (before_us + after_us) / 2;
	used_us = own_part_us(job, found_us, total_us);
	if (job->by_steps)
		sy_step_groups_count_from(&job->steps, found_us, used_us);
	else
		sy_cgroup_count_from(&job->cgroup, job->root, found_us, used_us);
	job->group_counts = true;
}

bool sy_job_cgroup_check(struct sy_job *job)
{
	if (!job->cgroup.path[0] || job->group_checked ||
	    sy_processes_locate(&job->processes, "") == SY_NO_PROCESS)
		return false;
	job->group_checked = true;
	sy_cgroup_open_missing(&job->cgroup, job->root);
	close_stale_groups(job);
	return true;
}

bool sy_job_cgroup_find_steps(struct sy_job *job)
{
	if (job->cgroup.cpu_source != SY_SOURCE_CGROUP2)
		return false;
	sy_step_groups_find(&job->steps);
	if (job->by_steps || !job->steps.known)
		return false;
	job->by_steps = true;
	return true;
}

static bool kernel_has_counted(const struct sy_job *job)
{
	return job->by_kernel && sy_kernel_count_usage(job->kernel).use[SY_USE_CPU_NS] > 0;
}

/* A group is removed as soon as it is empty (OpenPBS' pbs_cgroups: before its other hooks hear of
 * the job's end). A reading that comes later lacks what its last processes have used. */
int64_t sy_job_cgroup_last_us(struct sy_job *job, int64_t before_us, struct sy_status *status)
{
	const struct sy_processes *processes = &job->processes;
	bool alive = sy_processes_find_living(processes, sy_process_lives) > 0;
	int64_t now_us = alive ? before_us : sy_job_cgroup_us(job);
	int64_t group_us = now_us != SY_UNKNOWN ? now_us : before_us;

	if (group_us != SY_UNKNOWN)
		job->group_unused = group_us <= 0 && !processes->starter.found &&
				    processes->open_roots + processes->done_roots == 0;
	else if (job->group_unused && !kernel_has_counted(job)) /* no process was ever there */
		return 0;
	status->group_gone = group_us == SY_UNKNOWN && !sy_job_all_reported(job);
	return group_us;
}
