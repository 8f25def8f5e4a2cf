#include "sampler/counted.h"

#include "base/clock.h"
#include "sampler/group.h"
#include "sampler/job_totals.h"
#include "sampler/memory.h"

#include <time.h>
#include <unistd.h>

static bool may_be_counted(const struct sy_job *job)
{
	const struct sy_in_kernel *kernel = job->kernel;

	return kernel->counts && kernel->named;
}

/* From now on its processes are asked: what is gone by now is known by its parent alone. */
static bool leave_to_processes(struct sy_job *job)
{
	job->counted = job->kernel_counts = false;
	sy_processes_wake(&job->processes);
	return false;
}

/* Which controllers have it in its group only a process of it can tell. */
static void ask_groups(struct sy_job *job, enum sy_look look, struct sy_status *status)
{
	bool changed = look != SY_LOOK_DUE && sy_group_look_for_steps(job), asked = false;

	if (job->cgroup.path[0] && !job->groups_asked) {
		sy_processes_wake(&job->processes);
		sy_processes_refresh(&job->processes, false);
		asked = sy_group_look(job);
	}
	if (!asked && !changed)
		return;
	if (!job->group_counts || changed)
		sy_group_begin_counting(job);
	sy_job_report_sources(job, status);
}

void sy_job_tell_largest(const struct sy_job *job, enum sy_look look, struct sy_status *status)
{
	if (look != SY_LOOK_DUE)
		sy_job_note_memory(status, sy_bpf_largest_bytes(&job->kernel->bpf), SY_SOURCE_BPF);
}

static void read_memory(struct sy_job *job, enum sy_look look, int64_t rss_pages,
			struct sy_line *line, struct sy_status *status)
{
	sy_job_tell_largest(job, look, status);
	sy_job_read_memory(job, rss_pages * job->processes.page_bytes, SY_SOURCE_BPF, line, status);
}

/* Sums of tasks that live are too small by those that were left out: CPU time and I/O only until
 * these have ended, the others for good. */
static void tell_left_out(struct sy_job *job, uint64_t unlisted, struct sy_line *line,
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

/* At the end, or when all steps have told theirs, the group says whether that is all. */
static void read_cpu(struct sy_job *job, bool told, bool end, int64_t group_us,
		     const struct sy_usage *total, struct sy_line *line, struct sy_status *status)
{
	if (told && job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_group_last_us(job, group_us, status);
	if (told) {
		sy_job_read_cpu(job, end, group_us, total, line, status);
		return;
	}
	status->cpu_source = SY_SOURCE_BPF;
	sy_job_set(line, &status->sums.last, SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
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

/* Processes at work when the job ends, where no cgroup lets anybody end them with it. A process
 * that has ended since the earlier reading is not at work, however much it used. */
static int64_t count_survivors(const struct sy_job *job, bool end, int64_t now_us)
{
	const struct sy_bpf_answer *now = &job->kernel->now;
	const struct sy_living *before = &job->living[now_us - job->living[0].at_us < REST_US];

	if (!end || !job->period_us || job->group_counts || job->end_requested || job->exact ||
	    !before->at_us)
		return 0;
	return (int64_t)now->living_ns / 1000 - before->cpu_us >= AT_WORK_US
		   ? (int64_t)now->processes
		   : 0;
}

bool sy_job_read_counted(struct sy_job *job, enum sy_look look, struct sy_line *line,
			 struct sy_status *status)
{
	bool end = look == SY_LOOK_LAST, told = end || sy_job_all_reported(job);
	int64_t group_us = SY_UNKNOWN, now_us;
	struct sy_usage total;

	if (!may_be_counted(job))
		return leave_to_processes(job);
	/* First, so that what is used between the two readings is no gap. */
	if (told && job->cgroup.cpu_source != SY_SOURCE_NONE)
		group_us = sy_group_us(job);
	sy_processes_rest(&job->processes);
	if (look != SY_LOOK_DUE)
		sy_processes_refresh(&job->processes, end);
	total = sy_job_usage(job, end);
	if (!job->kernel_counts)
		return leave_to_processes(job);
	job->counted = true;
	ask_groups(job, look, status);
	sy_processes_rest(&job->processes);
	now_us = sy_now_us(CLOCK_MONOTONIC);
	status->survivors = count_survivors(job, end, now_us);
	note_living(job, now_us, job->kernel->now.living_ns);
	sy_in_kernel_tell(job->kernel, status);
	read_cpu(job, told, end, group_us, &total, line, status);
	read_memory(job, look, (int64_t)job->kernel->now.rss_pages, line, status);
	sy_job_read_io(job, end, &total, line, status);
	line->cell[SY_PROCESSES] = (int64_t)job->kernel->now.processes;
	tell_left_out(job, job->kernel->now.unlisted, line, status);
	return true;
}

void sy_job_set_tick(struct sy_job *job, const struct sy_bpf_tick *tick, struct sy_line *line,
		     struct sy_status *status)
{
	const struct sy_bpf_usage *used = &tick->used;
	const struct sy_line before = *line;

	note_living(job, (int64_t)tick->at_ns / 1000, tick->living_ns);
	sy_job_set(line, &before, SY_CPU, (int64_t)used->cpu_ns / 1000);
	sy_job_set(line, &before, SY_RCHAR, (int64_t)used->rchar);
	sy_job_set(line, &before, SY_WCHAR, (int64_t)used->wchar);
	sy_job_set(line, &before, SY_READ, (int64_t)used->read_bytes);
	sy_job_set(line, &before, SY_WRITE, (int64_t)used->write_bytes);
	line->cell[SY_PROCESSES] = (int64_t)tick->processes;
	if (job->cgroup.memory_source == SY_SOURCE_NONE) {
		line->cell[SY_MEMORY] = (int64_t)tick->rss_pages * job->processes.page_bytes;
		sy_job_note_memory(status, line->cell[SY_MEMORY], SY_SOURCE_BPF);
	}
	job->kernel->now.rss_pages = tick->rss_pages;
	job->kernel->now.used = *used; /* its page faults, and user_s of cpu_s */
	job->kernel->now.unlisted = tick->unlisted;
	tell_left_out(job, tick->unlisted, line, status);
}

void sy_job_read_meanwhile(struct sy_job *job, struct sy_line *line, struct sy_status *status)
{
	read_memory(job, SY_LOOK_DUE, (int64_t)job->kernel->now.rss_pages, line, status);
	tell_left_out(job, job->kernel->now.unlisted, line, status);
	ask_groups(job, SY_LOOK_DUE, status);
	sy_processes_rest(&job->processes);
}

bool sy_job_stays_counted(struct sy_job *job)
{
	const volatile struct sy_bpf_job *told = job->kernel->bpf.mapped;

	return job->counted && may_be_counted(job) && told && !told->lost && !told->late;
}
