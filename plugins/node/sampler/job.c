#include "sampler/job.h"

#include "base/clock.h"
#include "counters/processes_find.h"
#include "counters/tcp_sockets.h"
#include "sampler/counted.h"
#include "sampler/group.h"
#include "sampler/job_totals.h"
#include "sampler/memory.h"
#include "sampler/open_roots.h"

#include <time.h>
#include <unistd.h>

#define SELDOM_US 1000000 /* how often processes are asked where their group tells most */

void sy_job_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns)
{
	sy_in_kernel_root(job->kernel, pid, faults, since_ns);
	sy_processes_root(&job->processes, pid);
}

void sy_job_step_is_there(struct sy_job *job)
{
	if (sy_group_look_for_steps(job))
		sy_group_begin_counting(job);
}

void sy_job_count_from_here(struct sy_job *job, int root)
{
	job->root = root;
	sy_processes_wake(&job->processes); /* one of them tells which controllers have it */
	sy_processes_refresh(&job->processes, false);
	(void)sy_group_look_for_steps(job);
	(void)sy_group_look(job);
	sy_group_begin_counting(job);
}

static void read_memory(struct sy_job *job, struct sy_line *line, struct sy_status *status)
{
	bool grouped = job->cgroup.memory_source != SY_SOURCE_NONE;

	sy_job_read_memory(job, grouped ? SY_UNKNOWN : sy_processes_rss_bytes(&job->processes),
			   SY_SOURCE_PROCESSES, line, status);
}

/* Where the group counts CPU and memory, its processes are asked for I/O, and how many they are. */
static bool group_tells_most(const struct sy_job *job)
{
	return job->cgroup.cpu_source != SY_SOURCE_NONE &&
	       job->cgroup.memory_source != SY_SOURCE_NONE && job->groups_asked &&
	       job->group_counts && !job->exact;
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
			     struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;

	if (job->processes.starter.pid) /* whose children's ends must not be missed */
		sy_processes_discover(&job->processes);
	sy_job_set(line, before, SY_CPU, group_us);
	read_memory(job, line, status);
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
	bool changed;
	struct sy_usage total;

	status->nothing_named = !processes->named && !processes->starter.pid;
	if (status->nothing_named || sy_job_read_counted(job, look, line, status))
		return;
	changed = sy_group_look_for_steps(job);
	/* First, so that what is used between the two readings is no gap. */
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_group_us(job);
	if (!changed && !processes_are_due(job, look, group_us)) {
		read_group_alone(job, group_us, line, status);
		return;
	}
	sy_processes_refresh(processes, end);
	/* Without samples nobody has looked for what it has started. */
	status->nothing_named = !processes->named && job->period_us > 0;
	if (!processes->named)
		return;
	if (sy_group_look(job) || changed) {
		if (!job->group_counts || changed)
			sy_group_begin_counting(job);
		sy_job_report_sources(job, status);
		group_us = sy_group_us(job);
	}
	total = sy_job_usage(job, end);
	if (job->kernel_counts)
		sy_job_tell_largest(job, look, status);
	sy_in_kernel_tell(job->kernel, status);
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_group_last_us(job, group_us, status);
	sy_job_read_cpu(job, end, group_us, &total, line, status);
	read_memory(job, line, status);
	sy_job_read_io(job, end, &total, line, status);
	line->cell[SY_PROCESSES] = sy_processes_alive(processes);
	if (processes->overflowed && !job->kernel_counts)
		status->sums.unsure[SY_MOST_PROCESSES] = true;
}

/* What is told of the job's CPU may be a reading more than the group's of now: its sum, their
 * ratio. */
static void take_parts(struct sy_status *status, int64_t user, int64_t system)
{
	int64_t told = status->sums.last.cell[SY_CPU];
	double parts = (double)user + (double)system;

	if (told != SY_UNKNOWN && parts > 0) {
		user = (int64_t)((double)told * ((double)user / parts) + 0.5);
		system = told - user;
	}
	status->user_us = user;
	status->system_us = system;
}

void sy_job_split(struct sy_job *job, struct sy_status *status)
{
	int64_t user, system;

	if (status->cpu_source == SY_SOURCE_BPF)
		sy_in_kernel_split(job->kernel, status);
	if (!job->cgroup.cpu_source ||
	    (job->by_steps ? sy_step_groups_split_us(&job->steps, &user, &system)
			   : sy_cgroup_cpu_split_us(&job->cgroup, job->root, &user, &system)) < 0)
		return; /* what was known while the group was there stays */
	take_parts(status, user, system);
}

uid_t sy_job_user(const struct sy_sampling *sampling)
{
	if (sampling->has_owner)
		return sampling->owner_uid;
	return geteuid() ? geteuid() : SY_ANY_USER;
}
