#include "sampler/job_usage.h"

#include "counters/cgroup.h"
#include "counters/process_alive.h"
#include "record/record.h"

void sy_job_raise_total(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
			int64_t value)
{
	line->cell[cell] = value > before->cell[cell] ? value : before->cell[cell];
}

void sy_job_raise_io(struct sy_line *line, const struct sy_line *before,
		     const struct sy_usage *used)
{
	for (int i = SY_USE_RCHAR; i <= SY_USE_WRITE; i++)
		sy_job_raise_total(line, before,
				   (enum sy_cell)((int)SY_RCHAR + i - (int)SY_USE_RCHAR),
				   used->use[i]);
}

bool sy_job_all_reported(const struct sy_job *job)
{
	return job->processes.done_roots > 0 && job->processes.open_roots == 0;
}

/* At rate 0 no sample sees processes that come and go: only what steps have reported is known. */
static bool processes_are_known(const struct sy_job *job)
{
	return job->period_us > 0 || job->exact || job->by_kernel || sy_job_all_reported(job);
}

struct sy_usage sy_job_read_usage(struct sy_job *job, enum sy_reading reading)
{
	static const enum sy_bpf_patience patience[] = {[SY_READING_DUE] = SY_BPF_BRIEF,
							[SY_READING_NOW] = SY_BPF_SETTLED,
							[SY_READING_LAST] = SY_BPF_LAST};
	struct sy_usage reported = sy_processes_reported(&job->processes);

	job->by_kernel =
	    sy_kernel_count_read(job->kernel, patience[reading]) &&
	    (!job->kernel->now.settled || sy_kernel_count_confirm(job->kernel, &reported));
	return job->by_kernel ? sy_kernel_count_usage(job->kernel)
			      : sy_processes_total(&job->processes);
}

void sy_job_report_cpu_source(const struct sy_job *job, struct sy_status *status)
{
	status->cpu_source = job->cgroup.cpu_source ? job->cgroup.cpu_source : SY_SOURCE_PROCESSES;
}

/* The kernel counts a job with the processes that were moved out of its group. */
static bool kernel_has_more(const struct sy_job *job, int64_t group_us, int64_t total_us)
{
	return job->by_kernel &&
	       (job->cgroup.cpu_source == SY_SOURCE_NONE || group_us == SY_UNKNOWN ||
		total_us > group_us + sy_agreement_us(total_us));
}

/* Processes that were moved out of its group count where their step has waited for them. */
static bool steps_have_more(const struct sy_job *job, int64_t group_us, int64_t total_us)
{
	return sy_job_all_reported(job) && total_us > group_us + sy_agreement_us(total_us);
}

/* Tasks of a PBS job whose I/O nobody reports. Where the group has counted CPU and no task was ever
 * found, there was one. */
static int64_t count_lost_tasks(const struct sy_job *job, int64_t group_us)
{
	const struct sy_starter *starter = &job->processes.starter;

	if (job->by_kernel || !starter->pid)
		return 0;
	return starter->lost + (!starter->found && group_us > 0);
}

/* CPU time that the cgroup has counted and no step has reported. */
static void compare_reported(const struct sy_job *job, bool end, int64_t group_us,
			     struct sy_status *status)
{
	int64_t reported_us = sy_processes_reported(&job->processes).use[SY_USE_CPU_NS] / 1000;

	if (!end && !sy_job_all_reported(job)) {
		status->gap_us = SY_UNKNOWN;
		return;
	}
	if (group_us == SY_UNKNOWN || !job->group_counts)
		return;
	status->lost_tasks = count_lost_tasks(job, group_us);
	status->group_us = group_us;
	status->gap_us = group_us > reported_us ? group_us - reported_us : 0;
}

void sy_job_read_cpu(struct sy_job *job, bool end, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status)
{
	const struct sy_line *before = &status->sums.last;
	int64_t total_us = total->use[SY_USE_CPU_NS] / 1000, cpu_us = total_us;
	bool grouped = job->cgroup.cpu_source != SY_SOURCE_NONE && !job->exact;

	compare_reported(job, end, group_us, status);
	sy_job_report_cpu_source(job, status);
	if (kernel_has_more(job, group_us, total_us)) {
		status->group_gone = false;
		status->cpu_source = SY_SOURCE_BPF;
	} else if (grouped && group_us != SY_UNKNOWN && steps_have_more(job, group_us, total_us)) {
		status->cpu_source = SY_SOURCE_PROCESSES;
	} else if (grouped && group_us != SY_UNKNOWN) {
		/* Of more steps than there is room for some are not in the sum of their groups. */
		cpu_us = job->by_steps && total_us > group_us ? total_us : group_us;
	} else if (grouped) {
		cpu_us = sy_job_all_reported(job) ? total_us : SY_UNKNOWN;
	} else if (!processes_are_known(job)) {
		/* What was read before sampling was switched off is a part. */
		line->cell[SY_CPU] = SY_UNKNOWN;
		return;
	}
	sy_job_raise_total(line, before, SY_CPU, cpu_us);
}

static enum sy_source io_source(const struct sy_job *job)
{
	if (job->by_kernel)
		return SY_SOURCE_BPF;
	return sy_job_all_reported(job) ? SY_SOURCE_REAPED : SY_SOURCE_PROCESSES;
}

void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status)
{
	bool reported = sy_job_all_reported(job);

	status->io_source = io_source(job);
	status->proc_is_foreign = job->processes.proc_is_foreign;
	status->io_unreadable = job->processes.io_unreadable && !reported && !job->by_kernel;
	status->io_unreported = (end || reported) && !job->by_kernel && sy_has_gap(status);
	for (int i = 0; i < SY_USES; i++)
		status->io_least[i] = total->use[i];
	if (status->io_unreadable || status->io_unreported ||
	    (status->io_inseparable && !job->by_kernel) || !processes_are_known(job))
		return;
	sy_job_raise_io(line, &status->sums.last, total);
}

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
