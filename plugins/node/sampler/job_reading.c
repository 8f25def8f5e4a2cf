#include "sampler/job_reading.h"

#include "base/clock.h"
#include "counters/job_connections.h"
#include "counters/process_members.h"
#include "sampler/job_usage.h"

#include <time.h>
#include <unistd.h>

#define SELDOM_US 1000000 /* how often processes are read where the cgroup gives most */

void sy_job_add_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns)
{
	sy_kernel_count_add_root(job->kernel, pid, faults, since_ns);
	sy_processes_root(&job->processes, pid);
}

void sy_job_add_step(struct sy_job *job)
{
	if (sy_job_cgroup_find_steps(job))
		sy_job_cgroup_begin_counting(job);
}

void sy_job_start_counting(struct sy_job *job, int root)
{
	job->root = root;
	sy_processes_keep_all(&job->processes); /* one of them shows which controllers have it */
	sy_processes_refresh(&job->processes, false);
	(void)sy_job_cgroup_find_steps(job);
	(void)sy_job_cgroup_check(job);
	sy_job_cgroup_begin_counting(job);
}

/* --- counted by the kernel --- */

static bool kernel_may_count(const struct sy_job *job)
{
	return job->kernel->counts && job->kernel->named;
}

/* The job's own processes show whether it is in its cgroup, and a step where its tasks are. */
static void check_cgroup(struct sy_job *job, enum sy_reading reading, struct sy_status *status)
{
	bool changed = reading != SY_READING_DUE && sy_job_cgroup_find_steps(job), checked = false;

	if (job->cgroup.path[0] && !job->group_checked) {
		sy_processes_keep_all(&job->processes);
		sy_processes_refresh(&job->processes, false);
		checked = sy_job_cgroup_check(job);
	}
	if (!checked && !changed)
		return;
	if (!job->group_counts || changed)
		sy_job_cgroup_begin_counting(job);
	sy_job_report_cpu_source(job, status);
}

static void read_counted_memory(struct sy_job *job, enum sy_reading reading, struct sy_line *line,
				struct sy_status *status)
{
	int64_t resident = (int64_t)job->kernel->now.rss_pages * job->processes.page_bytes;

	if (reading != SY_READING_DUE) /* of processes that have ended, too */
		sy_job_note_memory(status, sy_bpf_largest_bytes(&job->kernel->bpf), SY_SOURCE_BPF);
	sy_job_read_memory(job, resident, SY_SOURCE_BPF, line, status);
}

/* Sums over living tasks lack the unlisted ones: CPU time and I/O until those end, memory and
 * faults for good. */
static void note_unlisted(struct sy_job *job, uint64_t unlisted, struct sy_line *line,
			  struct sy_status *status)
{
	if (!unlisted)
		return;
	if ((int64_t)unlisted > status->unread_tasks)
		status->unread_tasks = (int64_t)unlisted;
	line->cell[SY_PROCESSES] = SY_UNKNOWN;
	status->sums.unsure[SY_MOST_PROCESSES] = true;
	if (job->cgroup.memory_source != SY_SOURCE_NONE)
		return;
	line->cell[SY_MEMORY] = SY_UNKNOWN;
	status->sums.unsure[SY_MAX_MEMORY_BYTES] = true;
}

/* At the end, and when all steps have reported, the cgroup shows whether that is all. */
static void read_counted_cpu(struct sy_job *job, bool compared, bool end, int64_t group_us,
			     const struct sy_usage *total, struct sy_line *line,
			     struct sy_status *status)
{
	if (compared && job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_job_cgroup_last_us(job, group_us, status);
	if (compared) {
		sy_job_read_cpu(job, end, group_us, total, line, status);
		return;
	}
	status->cpu_source = SY_SOURCE_BPF;
	sy_job_raise_total(line, &status->sums.last, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
}

#define AT_WORK_US 1000 /* of CPU since a reading that is REST_US old at least */
#define REST_US	   90000

static void note_living(struct sy_job *job, int64_t at_us, uint64_t living_ns)
{
	if (at_us - job->living[0].at_us < REST_US)
		return;
	job->living[1] = job->living[0];
	job->living[0] = (struct sy_living){at_us, (int64_t)living_ns / 1000};
}

/* Processes at work when the job ends, or when all its steps have, where no cgroup lets anybody end
 * them with it. A process that has ended since the earlier reading is not at work, however much it
 * used; one that waits for a CPU is, though it used nothing. A command may be too short for an
 * earlier reading: then nobody knows that what it left behind rests. */
static int64_t count_survivors(const struct sy_job *job, bool ended, int64_t now_us)
{
	const struct sy_bpf_answer *now = &job->kernel->now;
	const struct sy_living *before = &job->living[now_us - job->living[0].at_us < REST_US];
	bool of_job = job->period_us && !job->group_counts && !job->end_requested;

	if (!ended || !(of_job || job->exact) || (!before->at_us && !job->exact))
		return 0;
	if (before->at_us && !now->runnable &&
	    (int64_t)now->living_ns / 1000 - before->cpu_us < AT_WORK_US)
		return 0;
	return (int64_t)now->processes;
}

/* False: the kernel does not count it, and never will again unless it has yet to be named. */
static bool read_by_kernel(struct sy_job *job, enum sy_reading reading, struct sy_line *line,
			   struct sy_status *status)
{
	bool end = reading == SY_READING_LAST, compared = end || sy_job_all_reported(job);
	int64_t group_us = SY_UNKNOWN, now_us;
	struct sy_usage total;

	job->by_kernel = false;
	if (!kernel_may_count(job))
		return false;
	/* First, so that what is used between the two readings is no gap. */
	if (compared && job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_job_cgroup_us(job);
	sy_processes_keep_roots(&job->processes);
	if (reading != SY_READING_DUE)
		sy_processes_refresh(&job->processes, end);
	total = sy_job_read_usage(job, reading);
	status->unsettled = job->by_kernel && !job->kernel->now.settled;
	if (!job->by_kernel)
		return false;
	check_cgroup(job, reading, status);
	sy_processes_keep_roots(&job->processes);
	now_us = sy_now_us(CLOCK_MONOTONIC);
	status->survivors = count_survivors(job, compared, now_us);
	note_living(job, now_us, job->kernel->now.living_ns);
	sy_kernel_count_report(job->kernel, status);
	read_counted_cpu(job, compared, end, group_us, &total, line, status);
	read_counted_memory(job, reading, line, status);
	sy_job_read_io(job, end, &total, line, status);
	line->cell[SY_PROCESSES] = (int64_t)job->kernel->now.processes;
	note_unlisted(job, job->kernel->now.unlisted, line, status);
	return true;
}

void sy_job_set_tick(struct sy_job *job, const struct sy_bpf_tick *tick, struct sy_line *line,
		     struct sy_status *status)
{
	const struct sy_line before = *line;
	struct sy_usage used;

	note_living(job, (int64_t)tick->at_ns / 1000, tick->living_ns);
	job->kernel->now.used = tick->used; /* its page faults, and user_s of cpu_s */
	used = sy_kernel_count_usage(job->kernel);
	sy_job_raise_total(line, &before, SY_CPU, used.use[SY_USE_CPU_NS] / 1000);
	sy_job_raise_io(line, &before, &used);
	line->cell[SY_PROCESSES] = (int64_t)tick->processes;
	if (job->cgroup.memory_source == SY_SOURCE_NONE) {
		line->cell[SY_MEMORY] = (int64_t)tick->rss_pages * job->processes.page_bytes;
		sy_job_note_memory(status, line->cell[SY_MEMORY], SY_SOURCE_BPF);
	}
	job->kernel->now.rss_pages = tick->rss_pages;
	job->kernel->now.unlisted = tick->unlisted;
	note_unlisted(job, tick->unlisted, line, status);
}

void sy_job_read_with_ticks(struct sy_job *job, struct sy_line *line, struct sy_status *status)
{
	read_counted_memory(job, SY_READING_DUE, line, status);
	note_unlisted(job, job->kernel->now.unlisted, line, status);
	check_cgroup(job, SY_READING_DUE, status);
	sy_processes_keep_roots(&job->processes);
}

bool sy_job_is_counted_by_kernel(struct sy_job *job)
{
	const volatile struct sy_bpf_job *counted = job->kernel->bpf.mapped;

	return job->by_kernel && kernel_may_count(job) && counted && !counted->lost &&
	       !counted->late;
}

/* --- by its cgroup and its processes --- */

static void read_memory(struct sy_job *job, struct sy_line *line, struct sy_status *status)
{
	bool grouped = job->cgroup.memory_source != SY_SOURCE_NONE;

	sy_job_read_memory(job, grouped ? SY_UNKNOWN : sy_processes_rss_bytes(&job->processes),
			   SY_SOURCE_PROCESSES, line, status);
}

/* CPU and memory: its processes are read for I/O, and how many they are. */
static bool cgroup_gives_most(const struct sy_job *job)
{
	return job->cgroup.cpu_source != SY_SOURCE_NONE &&
	       job->cgroup.memory_source != SY_SOURCE_NONE && job->group_checked &&
	       job->group_counts && !job->exact;
}

static bool processes_are_due(struct sy_job *job, enum sy_reading reading, int64_t group_us)
{
	struct sy_processes *processes = &job->processes;
	int64_t since_us = sy_now_us(CLOCK_MONOTONIC) - processes->now_us;
	bool seldom = cgroup_gives_most(job) && job->period_us < SELDOM_US;

	processes->period_us = seldom ? SELDOM_US : job->period_us;
	processes->has_group_memory = job->cgroup.memory_source != SY_SOURCE_NONE;
	return !seldom || reading != SY_READING_DUE || group_us == SY_UNKNOWN ||
	       processes->walk_all || since_us >= SELDOM_US - job->period_us / 2;
}

static void read_cgroup_alone(struct sy_job *job, int64_t group_us, struct sy_line *line,
			      struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;

	if (job->processes.starter.pid) /* whose children's ends must not be missed */
		sy_processes_discover(&job->processes);
	sy_job_raise_total(line, before, SY_CPU, group_us);
	read_memory(job, line, status);
	for (int i = SY_RCHAR; i <= SY_WRITE; i++)
		line->cell[i] = before->cell[i];
	line->cell[SY_PROCESSES] = before->cell[SY_PROCESSES];
}

static void read_processes(struct sy_job *job, bool end, bool steps_found, int64_t group_us,
			   struct sy_line *line, struct sy_status *status)
{
	struct sy_processes *processes = &job->processes;
	struct sy_usage total;

	sy_processes_refresh(processes, end);
	/* Without samples nobody has looked for what it has started. */
	status->nothing_named = !processes->named && job->period_us > 0;
	if (!processes->named)
		return;
	if (sy_job_cgroup_check(job) || steps_found) {
		if (!job->group_counts || steps_found)
			sy_job_cgroup_begin_counting(job);
		sy_job_report_cpu_source(job, status);
		group_us = sy_job_cgroup_us(job);
	}
	total = sy_processes_total(processes);
	if (end)
		sy_kernel_count_check_begin(job->kernel);
	sy_kernel_count_report(job->kernel, status);
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_job_cgroup_last_us(job, group_us, status);
	sy_job_read_cpu(job, end, group_us, &total, line, status);
	read_memory(job, line, status);
	sy_job_read_io(job, end, &total, line, status);
	line->cell[SY_PROCESSES] = sy_processes_alive(processes);
	if (processes->overflowed)
		status->sums.unsure[SY_MOST_PROCESSES] = true;
}

void sy_job_read(struct sy_job *job, enum sy_reading reading, struct sy_line *line,
		 struct sy_status *status)
{
	struct sy_processes *processes = &job->processes;
	int64_t group_us = SY_UNKNOWN;
	bool steps_found;

	status->nothing_named = !processes->named && !processes->starter.pid;
	if (status->nothing_named || read_by_kernel(job, reading, line, status))
		return;
	sy_processes_keep_all(processes);
	steps_found = sy_job_cgroup_find_steps(job);
	/* First, so that what is used between the two readings is no gap. */
	if (job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_job_cgroup_us(job);
	if (steps_found || processes_are_due(job, reading, group_us))
		read_processes(job, reading == SY_READING_LAST, steps_found, group_us, line,
			       status);
	else
		read_cgroup_alone(job, group_us, line, status);
}

/* --- user and system time --- */

/* The job's CPU time may come from another reading than the cgroup's split: keep the job's sum
 * and the cgroup's ratio. */
static void set_split(struct sy_status *status, int64_t user, int64_t system)
{
	int64_t cpu_us = status->sums.last.cell[SY_CPU];
	double both = (double)user + (double)system;

	if (cpu_us != SY_UNKNOWN && both > 0) {
		user = (int64_t)((double)cpu_us * ((double)user / both) + 0.5);
		system = cpu_us - user;
	}
	status->user_us = user;
	status->system_us = system;
}

/* Once the cgroup is gone its last ratio holds for what steps reported since. */
void sy_job_split(struct sy_job *job, struct sy_status *status)
{
	int64_t user, system;
	bool split;

	if (status->cpu_source == SY_SOURCE_BPF)
		sy_kernel_count_split(job->kernel, status);
	if (!job->cgroup.cpu_source)
		return;
	split =
	    (job->by_steps ? sy_step_groups_split_us(&job->steps, &user, &system)
			   : sy_cgroup_cpu_split_us(&job->cgroup, job->root, &user, &system)) >= 0;
	if (split)
		set_split(status, user, system);
	else if (status->user_us != SY_UNKNOWN && status->cpu_source != SY_SOURCE_BPF)
		set_split(status, status->user_us, status->system_us);
}

uid_t sy_job_user(const struct sy_sampling *sampling)
{
	if (sampling->has_owner)
		return sampling->owner_uid;
	return geteuid() ? geteuid() : SY_ANY_USER;
}
