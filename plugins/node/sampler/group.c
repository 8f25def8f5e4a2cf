#include "sampler/group.h"

#include "sampler/open_roots.h"

/* Where the daemons of steps lie in the group, too (version 2), the groups of their tasks tell. */
int64_t sy_group_us(struct sy_job *job)
{
	int64_t counted = sy_cgroup_cpu_us(&job->cgroup);

	return counted == SY_UNKNOWN || !job->by_steps ? counted
						       : sy_step_groups_cpu_us(&job->steps);
}

static struct sy_daemons daemons_of(struct sy_job *job)
{
	if (job->by_steps)
		return (struct sy_daemons){.count = 0};
	return sy_processes_daemons(&job->processes,
				    job->cgroup.cpu_source == SY_SOURCE_CGROUP1 ? "cpuacct" : "");
}

/* Where only some controllers have the job in a group, the others may still have one of that name,
 * left behind by an earlier job of that id. */
static void leave_strange_groups(struct sy_job *job)
{
	bool cpu1 = job->cgroup.cpu_source == SY_SOURCE_CGROUP1;
	bool memory1 = job->cgroup.memory_source == SY_SOURCE_CGROUP1;

	if (sy_processes_place(&job->processes, cpu1 ? "cpuacct" : "") == SY_ELSEWHERE) {
		sy_cgroup_leave_cpu(&job->cgroup);
		job->unseen.known = false;
	}
	if (sy_processes_place(&job->processes, memory1 ? "memory" : "") == SY_ELSEWHERE)
		sy_cgroup_leave_memory(&job->cgroup);
}

#define ROUNDING_US 50000

/* The group is read before and after the clocks of those who may be running in it. */
void sy_group_begin_counting(struct sy_job *job)
{
	/* A batch daemon's prologue runs in the group before anything of the job does: all that the
	 * processes do not show is its. */
	int64_t rounding_us = job->processes.starter.pid ? 0 : ROUNDING_US;
	int64_t before_us, after_us, total_us, found_us, used_us;
	struct sy_daemons daemons;

	before_us = sy_group_us(job);
	total_us = sy_job_usage(job, false).use[SY_USE_CPU_NS] / 1000;
	after_us = sy_group_us(job);
	if (job->cgroup.cpu_source == SY_SOURCE_NONE || before_us == SY_UNKNOWN ||
	    after_us == SY_UNKNOWN)
		return;
	/* With what the living have waited for; so little beyond it is the rounding of that, by
	 * clock ticks, and no earlier job's. */
	found_us = (before_us + after_us) / 2;
	used_us = found_us < total_us + rounding_us ? found_us : total_us;
	if (job->by_steps)
		sy_step_groups_count_from(&job->steps, found_us, used_us);
	else
		sy_cgroup_count_from(&job->cgroup, job->root, found_us, used_us);
	daemons = daemons_of(job);
	sy_unseen_begin(&job->unseen, used_us, total_us, &daemons);
}

bool sy_group_look(struct sy_job *job)
{
	if (!job->cgroup.path[0] || job->groups_asked ||
	    sy_processes_place(&job->processes, "") == SY_NOBODY_TO_ASK)
		return false;
	job->groups_asked = true;
	sy_cgroup_open_missing(&job->cgroup, job->root);
	leave_strange_groups(job);
	return true;
}

bool sy_group_look_for_steps(struct sy_job *job)
{
	if (job->cgroup.cpu_source != SY_SOURCE_CGROUP2)
		return false;
	sy_step_groups_find(&job->steps);
	if (job->by_steps || !job->steps.known)
		return false;
	job->by_steps = true;
	return true;
}

void sy_group_compare(struct sy_job *job, const struct sy_usage *total, int64_t group_us,
		      struct sy_status *status)
{
	struct sy_daemons daemons = daemons_of(job);

	if (group_us == SY_UNKNOWN || !job->unseen.known)
		return;
	sy_unseen_compare(&job->unseen, group_us, total->use[SY_USE_CPU_NS] / 1000, &daemons);
	status->unseen = job->unseen;
}

/* Where the daemons of steps lie in the group (version 2), their own CPU is not the job's. */
int64_t sy_group_cpu_of_tasks_us(const struct sy_job *job, const struct sy_usage *total,
				 int64_t group_us)
{
	int64_t total_us = total->use[SY_USE_CPU_NS] / 1000;

	if (job->by_steps) /* of more steps than there is room for some are not in the sum */
		return group_us > total_us ? group_us : total_us;
	if (!job->unseen.known || !job->unseen.daemons)
		return group_us;
	return total_us + job->unseen.us;
}

int64_t sy_group_cpu_meanwhile_us(struct sy_job *job, int64_t group_us)
{
	struct sy_daemons daemons;

	if (!job->unseen.daemons)
		return group_us;
	daemons = daemons_of(job);
	return sy_unseen_left_us(&job->unseen, group_us, &daemons);
}

/* A group is removed as soon as nobody is in it (OpenPBS' pbs_cgroups: before its other hooks hear
 * of the job's end): who comes later does not know what the last ones have used. */
int64_t sy_group_last_us(struct sy_job *job, int64_t before_us, struct sy_status *status)
{
	bool alive = sy_processes_any(&job->processes, sy_lives) > 0;
	int64_t now_us = alive ? before_us : sy_group_us(job);
	int64_t group_us = now_us != SY_UNKNOWN ? now_us : before_us;

	if (group_us != SY_UNKNOWN) {
		job->group_in_use = alive;
		job->group_unused = group_us <= 0;
	}
	status->group_gone =
	    group_us == SY_UNKNOWN && !sy_job_all_told(job) &&
	    (job->group_in_use || (job->group_unused && job->processes.unwaited.at_work > 0));
	return group_us;
}
