/* Whether a record lacks anything. The one rule: what its processes have used is complete
 * - where the kernel counted them (bpf) and none was still at work when the job ended, or
 * - where their cgroup's CPU and what steps have reported agree (sy_agreement_us), or
 * - where it is a command that was waited for, that left no process behind, and of whose processes
 *   samples show no more than was waited for.
 * Else it is not, and the reason has the gap in seconds, where a cgroup shows it. A task of a PBS
 * job that ended before it was read makes the record incomplete, however little CPU it used. A job
 * that named no process has none that could be missing. */
#include "record/record.h"

#include "counters/cgroup.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The kernel adds to nobody what a child of a parent that ignores SIGCHLD has used. What samples
 * show is never too much: where it is more than the command has waited for, some is missing. */
bool sy_exact_lacks(const struct sy_exact *exact, const struct sy_status *status)
{
	const int64_t *sampled = status->sums.last.cell;

	/* What lives on is not the command's, but the kernel counts what it has used until now. */
	if (!exact->known || (exact->has_unreaped_children && status->io_source != SY_SOURCE_BPF))
		return false;
	return sampled[SY_CPU] > exact->cpu_us + SY_TICKS_ROUNDING_US ||
	       (exact->io_known &&
		(sampled[SY_RCHAR] > exact->io[0] || sampled[SY_WCHAR] > exact->io[1]));
}

/* Why it may lack anything. */
static const char *job_reason(const struct sy_status *status, pid_t child, int ended, char *text,
			      size_t size)
{
	if (child <= 0)
		return "the sampler could not be started";
	if (WIFSIGNALED(ended))
		(void)snprintf(text, size, "the sampler was killed by signal %d", WTERMSIG(ended));
	else if (!status->finished)
		(void)snprintf(text, size, "the sampler ended early (exit code %d)",
			       WEXITSTATUS(ended));
	else if (status->begun_late)
		return "the job's start was not reported on this node: what it did before "
		       "start_unix_s "
		       "is not in here";
	else if (status->opening_us)
		(void)snprintf(text, size,
			       "the record folder answered %.1f s after the sampler's start: what "
			       "the job did before start_unix_s is not in here",
			       (double)status->opening_us / 1e6);
	else if (status->late_us)
		(void)snprintf(text, size,
			       "the sampler took its first sample %.1f s after its launch: "
			       "elapsed_s begins at the launch, but what the job did before "
			       "start_unix_s is not in here",
			       (double)status->late_us / 1e6);
	else if (status->stalled_us)
		(void)snprintf(text, size,
			       "the record folder did not answer for %.1f s when the job ended: "
			       "elapsed_s, energy and network reach to when it did",
			       (double)status->stalled_us / 1e6);
	else if (status->watch_lost)
		(void)snprintf(text, size,
			       "the process that reports the job's end is gone: what "
			       "the job did after end_unix_s is not in here");
	else if (status->dropped_notes)
		(void)snprintf(text, size, "%lld messages with tags did not fit into %d bytes",
			       (long long)status->dropped_notes, SY_NOTES_SIZE);
	else
		return NULL;
	return text;
}

/* Why the kernel's count is not used; "" where it was not to be. */
static void append_kernel(const struct sy_status *status, char *text, size_t size)
{
	size_t used = strlen(text);

	if (status->bpf_reason[0])
		(void)snprintf(text + used, size - used, "; the kernel's count is not used: %s",
			       status->bpf_reason);
}

static bool has_unreported_cpu(const struct sy_status *status)
{
	return status->gap_us != SY_UNKNOWN && status->gap_us > sy_agreement_us(status->group_us);
}

bool sy_has_gap(const struct sy_status *status)
{
	return has_unreported_cpu(status) ||
	       (status->gap_us != SY_UNKNOWN && status->lost_tasks > 0);
}

static const char *job_processes_reason(const struct sy_status *status, char *text, size_t size)
{
	if (has_unreported_cpu(status))
		(void)snprintf(text, size,
			       "the job's cgroup has counted %.2f s of CPU (%.0f %% of the job's) "
			       "that no step reported: its I/O is not known",
			       (double)status->gap_us / 1e6,
			       100.0 * (double)status->gap_us / (double)status->group_us);
	else if (sy_has_gap(status))
		(void)snprintf(text, size,
			       "%lld of the job's tasks ended before their last counters were "
			       "read: its I/O is not known",
			       (long long)status->lost_tasks);
	else if (status->gap_us != SY_UNKNOWN)
		return NULL;
	else if (status->group_gone)
		(void)snprintf(text, size,
			       "the job's cgroup was removed before it was read for the last "
			       "time: cpu and io lack what came after the last sample");
	else
		(void)snprintf(text, size,
			       "neither the kernel nor a cgroup has counted the job's processes: "
			       "cpu and io lack those that no step has waited for");
	append_kernel(status, text, size);
	return text;
}

static const char *command_reason(const struct sy_status *status, const struct sy_exact *exact,
				  char *text, size_t size)
{
	bool counted = status->io_source == SY_SOURCE_BPF;

	if (exact->known && exact->has_unreaped_children && (!counted || status->survivors))
		return "processes that the command left behind ran on when it ended: cpu and io "
		       "lack what they used";
	if (exact->known && !counted && status->proc_is_foreign)
		return "/proc shows another PID namespace: whether the command's processes had "
		       "children that nobody waited for is not known";
	if (counted || !sy_exact_lacks(exact, status))
		return NULL;
	(void)snprintf(text, size,
		       "samples show %.2f s more CPU than the command has waited for: cpu and io "
		       "lack children of a parent that ignores SIGCHLD",
		       (double)(status->sums.last.cell[SY_CPU] - exact->cpu_us) / 1e6);
	return text;
}

/* Why what its processes have used may be too little. */
static const char *processes_reason(const struct sy_status *status, const struct sy_exact *exact,
				    char *text, size_t size)
{
	bool counted = status->io_source == SY_SOURCE_BPF;

	if (exact)
		return command_reason(status, exact, text, size);
	if (counted && status->survivors) {
		(void)snprintf(text, size,
			       "%lld processes of the job were still at work when it ended: cpu "
			       "and io lack what they did from then on",
			       (long long)status->survivors);
		return text;
	}
	if (counted || (status->nothing_named && !status->by_marks))
		return NULL;
	return job_processes_reason(status, text, size);
}

void sy_record_completeness(json_t *record, const struct sy_status *status,
			    const struct sy_exact *exact, pid_t child, int ended)
{
	char text[400];
	const char *reason = job_reason(status, child, ended, text, sizeof(text));

	sy_record_complete(record,
			   reason ? reason : processes_reason(status, exact, text, sizeof(text)));
	if (!reason && !json_is_true(json_object_get(record, "complete")))
		(void)json_object_set_new(record, "incomplete_of", json_string("processes"));
}
