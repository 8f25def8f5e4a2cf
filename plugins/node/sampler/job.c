#include "sampler/job.h"

#include "base/clock.h"
#include "counters/processes_find.h"
#include "counters/tcp_owner.h"
#include "sampler/open_roots.h"

#include <time.h>
#include <unistd.h>

#define SELDOM_US 1000000 /* how often processes are asked where their group tells most */

/* Totals do not go down, whatever the sources: SY_UNKNOWN is below every value. */
static void set_cell(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
		     int64_t value)
{
	line->cell[cell] = value > before->cell[cell] ? value : before->cell[cell];
}

void sy_job_root(struct sy_job *job, pid_t pid, int64_t faults)
{
	sy_in_kernel_root(job->kernel, pid, faults);
	sy_processes_root(&job->processes, pid);
}

bool sy_job_all_told(const struct sy_job *job)
{
	return job->processes.done_roots > 0 && job->processes.open_roots == 0;
}

/* At rate 0 nobody sees processes that come and go: only what their steps have told is known. */
static bool processes_are_known(const struct sy_job *job)
{
	return job->period_us > 0 || job->exact || sy_job_all_told(job);
}

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

/* Where the daemons of steps lie in the group, too (version 2), the groups of their tasks tell. */
static int64_t counted_us(struct sy_job *job)
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

void sy_job_tell_sources(const struct sy_job *job, struct sy_status *status)
{
	status->cpu_source = job->cgroup.cpu_source ? job->cgroup.cpu_source : SY_SOURCE_PROCESSES;
	if (status->memory_source != SY_SOURCE_RUSAGE) /* a step has told of a larger process */
		status->memory_source =
		    job->cgroup.memory_source ? job->cgroup.memory_source : SY_SOURCE_PROCESSES;
	status->unseen.known &= job->unseen.known;
}

/* What is known of its processes: counted by the kernel, or summed up here. */
static struct sy_usage usage_of(struct sy_job *job, bool end)
{
	struct sy_usage shown = sy_processes_total(&job->processes);

	job->kernel_counts = sy_in_kernel_read(job->kernel, end) &&
			     (!(end || sy_job_all_told(job)) || !job->kernel->now.settled ||
			      sy_in_kernel_holds(job->kernel, &shown));
	return job->kernel_counts ? sy_in_kernel_usage(job->kernel) : shown;
}

#define ROUNDING_US 50000

/* The group is read before and after the clocks of those who may be running in it. */
static void begin_counting(struct sy_job *job)
{
	/* A batch daemon's prologue runs in the group before anything of the job does: all that the
	 * processes do not show is its. */
	int64_t rounding_us = job->processes.starter.pid ? 0 : ROUNDING_US;
	int64_t before_us, after_us, total_us, found_us, used_us;
	struct sy_daemons daemons;

	before_us = counted_us(job);
	total_us = usage_of(job, false).use[SY_USE_CPU_NS] / 1000;
	after_us = counted_us(job);
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

/* A step tells of the group before anybody in it is the user's program and could be asked, and on
 * version 1 before every controller has it. Returns whether somebody was asked now. */
static bool look_at_groups(struct sy_job *job)
{
	if (!job->cgroup.path[0] || job->groups_asked ||
	    sy_processes_place(&job->processes, "") == SY_NOBODY_TO_ASK)
		return false;
	job->groups_asked = true;
	sy_cgroup_open_missing(&job->cgroup, job->root);
	leave_strange_groups(job);
	return true;
}

/* Returns whether they tell from now on. */
static bool look_for_steps(struct sy_job *job)
{
	if (job->cgroup.cpu_source != SY_SOURCE_CGROUP2)
		return false;
	sy_step_groups_find(&job->steps);
	if (job->by_steps || !job->steps.known)
		return false;
	job->by_steps = true;
	return true;
}

void sy_job_step_is_there(struct sy_job *job)
{
	if (look_for_steps(job))
		begin_counting(job);
}

void sy_job_count_from_here(struct sy_job *job, int root)
{
	job->root = root;
	sy_processes_refresh(&job->processes, false);
	(void)look_for_steps(job);
	(void)look_at_groups(job);
	begin_counting(job);
}

static void compare_with_group(struct sy_job *job, const struct sy_usage *total, int64_t group_us,
			       struct sy_status *status)
{
	struct sy_daemons daemons = daemons_of(job);

	if (group_us == SY_UNKNOWN || !job->unseen.known)
		return;
	sy_unseen_compare(&job->unseen, group_us, total->use[SY_USE_CPU_NS] / 1000, &daemons);
	status->unseen = job->unseen;
}

/* Where the daemons of steps lie in the group (version 2), their own CPU is not the job's. */
static int64_t cpu_of_group_us(const struct sy_job *job, const struct sy_usage *total,
			       int64_t group_us)
{
	int64_t total_us = total->use[SY_USE_CPU_NS] / 1000;

	if (job->by_steps) /* of more steps than there is room for some are not in the sum */
		return group_us > total_us ? group_us : total_us;
	if (!job->unseen.known || !job->unseen.daemons)
		return group_us;
	return total_us + job->unseen.us;
}

/* The same, of processes that are not asked now. */
static int64_t cpu_meanwhile_us(struct sy_job *job, int64_t group_us)
{
	struct sy_daemons daemons;

	if (!job->unseen.daemons)
		return group_us;
	daemons = daemons_of(job);
	return sy_unseen_left_us(&job->unseen, group_us, &daemons);
}

/* The kernel counts a job without the daemons of its steps, who may lie in its group. */
static bool kernel_has_cpu(const struct sy_job *job)
{
	return job->kernel_counts && !job->exact &&
	       (job->cgroup.cpu_source == SY_SOURCE_NONE || job->unseen.daemons);
}

static void read_cpu(struct sy_job *job, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;

	if (job->cgroup.cpu_source != SY_SOURCE_NONE && !job->exact)
		compare_with_group(job, total, group_us, status);
	sy_job_tell_sources(job, status);
	if (kernel_has_cpu(job)) {
		status->cpu_source = SY_SOURCE_BPF;
		set_cell(line, before, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
	} else if (job->cgroup.cpu_source != SY_SOURCE_NONE && !job->exact) {
		if (group_us == SY_UNKNOWN && sy_job_all_told(job)) /* gone with the last step */
			set_cell(line, before, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
		else
			set_cell(line, before, SY_CPU, cpu_of_group_us(job, total, group_us));
	} else if (processes_are_known(job)) {
		set_cell(line, before, SY_CPU, believed_cpu_us(job, total, &status->cpu_held_us));
	}
}

static void read_memory(struct sy_job *job, enum sy_look look, struct sy_line *line)
{
	int64_t group = SY_UNKNOWN;

	if (!job->period_us)
		return; /* of a moment or two: no maximum */
	if (job->cgroup.memory_source != SY_SOURCE_NONE)
		group = sy_cgroup_memory_bytes(&job->cgroup, look == SY_LOOK_LAST);
	if (group != SY_UNKNOWN)
		line->cell[SY_MEMORY] = group;
	else if (job->cgroup.memory_source == SY_SOURCE_NONE)
		line->cell[SY_MEMORY] = sy_processes_rss_bytes(&job->processes);
}

static void read_io(struct sy_job *job, bool end, const struct sy_usage *total,
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
	if (status->io_unreadable || status->io_unseen || !processes_are_known(job))
		return;
	for (int i = SY_USE_RCHAR; i <= SY_USE_WRITE; i++)
		set_cell(line, &status->sums.last,
			 (enum sy_cell)((int)SY_RCHAR + i - (int)SY_USE_RCHAR), total->use[i]);
}

/* A group is removed as soon as nobody is in it (OpenPBS' pbs_cgroups: before its other hooks hear
 * of the job's end): who comes later does not know what the last ones have used. */
static int64_t group_cpu_us(struct sy_job *job, int64_t before_us, struct sy_status *status)
{
	bool alive = sy_processes_any(&job->processes, sy_lives) > 0;
	int64_t now_us = alive ? before_us : counted_us(job);
	int64_t group_us = now_us != SY_UNKNOWN ? now_us : before_us;

	if (group_us != SY_UNKNOWN) {
		job->group_in_use = alive;
		job->group_unused = group_us <= 0;
	}
	status->group_gone =
	    group_us == SY_UNKNOWN && !sy_job_all_told(job) &&
	    (job->group_in_use || (job->group_unused && job->processes.unwaited > 0));
	return group_us;
}

/* Where the group counts CPU and memory, its processes are asked for I/O, and how many they are. */
static bool group_tells_most(const struct sy_job *job)
{
	return job->cgroup.cpu_source != SY_SOURCE_NONE &&
	       job->cgroup.memory_source != SY_SOURCE_NONE && job->groups_asked &&
	       job->unseen.known && !job->exact;
}

static bool processes_are_due(struct sy_job *job, enum sy_look look, int64_t group_us)
{
	struct sy_processes *processes = &job->processes;
	int64_t since_us = sy_now_us(CLOCK_MONOTONIC) - processes->now_us;
	bool seldom = group_tells_most(job) && job->period_us < SELDOM_US;

	processes->period_us = seldom ? SELDOM_US : job->period_us;
	return !seldom || look != SY_LOOK_DUE || group_us == SY_UNKNOWN || processes->walk_all ||
	       since_us >= SELDOM_US - job->period_us / 2;
}

static void read_group_alone(struct sy_job *job, int64_t group_us, struct sy_line *line,
			     const struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;

	if (job->processes.starter.pid) /* whose children's ends must not be missed */
		sy_processes_discover(&job->processes);
	set_cell(line, before, SY_CPU, cpu_meanwhile_us(job, group_us));
	read_memory(job, SY_LOOK_DUE, line);
	for (int i = SY_RCHAR; i <= SY_WRITE; i++)
		line->cell[i] = before->cell[i];
	line->cell[SY_PROCESSES] = before->cell[SY_PROCESSES];
}

void sy_job_read(struct sy_job *job, enum sy_look look, struct sy_line *line,
		 struct sy_status *status)
{
	struct sy_processes *processes = &job->processes;
	bool end = look == SY_LOOK_LAST;
	int64_t group_us = SY_UNKNOWN;
	bool changed = look_for_steps(job);
	struct sy_usage total;
	int64_t unwaited;

	status->nothing_named = !processes->named && !processes->starter.pid;
	if (status->nothing_named)
		return;
	/* First, so that what is used between the two readings is no gap. */
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = counted_us(job);
	if (!changed && !processes_are_due(job, look, group_us)) {
		read_group_alone(job, group_us, line, status);
		return;
	}
	sy_processes_refresh(processes, end);
	/* Without samples nobody has looked for what the daemon has started. */
	status->nothing_named = !processes->named && job->period_us > 0;
	/* The group has counted what they used, and their parents have waited for their I/O: but
	 * for the processes that a batch daemon waits for, of which nobody tells it. */
	/* Of a job that nothing is told of nothing lacks. */
	unwaited = processes_are_known(job) ? processes->unwaited : 0;
	status->unwaited = job->unseen.known ? 0 : unwaited;
	status->unwaited_io = job->unseen.known && processes->starter.pid ? unwaited : 0;
	if (!processes->named)
		return;
	if (look_at_groups(job) || changed) {
		if (!job->unseen.known || changed)
			begin_counting(job);
		sy_job_tell_sources(job, status);
		group_us = counted_us(job);
	}
	total = usage_of(job, end);
	if (job->kernel_counts)
		status->unwaited = status->unwaited_io = 0;
	sy_in_kernel_tell(job->kernel, status);
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = group_cpu_us(job, group_us, status);
	read_cpu(job, group_us, &total, line, status);
	read_memory(job, look, line);
	read_io(job, end, &total, line, status);
	line->cell[SY_PROCESSES] = sy_processes_alive(processes);
	status->overflowed = processes->overflowed && !job->kernel_counts;
}

void sy_job_split(struct sy_job *job, struct sy_status *status)
{
	int64_t user, system;

	if (status->cpu_source == SY_SOURCE_BPF)
		sy_in_kernel_split(job->kernel, status);
	if (!job->cgroup.cpu_source || job->unseen.daemons || job->by_steps ||
	    sy_cgroup_cpu_split_us(&job->cgroup, job->root, &user, &system) < 0)
		return; /* what was known while the group was there stays */
	status->user_us = user;
	status->system_us = system;
}

uid_t sy_job_user(const struct sy_sampling *sampling)
{
	if (sampling->has_owner)
		return sampling->owner_uid;
	return geteuid() ? geteuid() : SY_ANY_USER;
}
