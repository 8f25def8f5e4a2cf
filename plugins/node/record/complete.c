#include "record/complete.h"

#include "record/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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
		return "nobody told the job's begin on this node: what it did before start_unix_s "
		       "is not in here";
	else if (status->watch_lost)
		(void)snprintf(text, size,
			       "whoever was to tell the job's end was gone without a word: what "
			       "the job did after end_unix_s is not in here");
	else if (status->dropped_notes)
		(void)snprintf(text, size, "%lld messages with tags did not fit into %d bytes",
			       (long long)status->dropped_notes, SY_NOTES_SIZE);
	else
		return NULL;
	return text;
}

static const char *unwaited_reason(const struct sy_status *status, char *text, size_t size)
{
	char most[80] = "";

	if (status->unwaited_most_us >= 0)
		(void)snprintf(most, sizeof(most), " (at most %.2f s of CPU by the threads seen)",
			       (double)status->unwaited_most_us / 1e6);
	(void)snprintf(text, size,
		       "%lld processes at work ended without anyone's waiting for them: cpu and io "
		       "lack what they did after their last sample%s, and others like them that no "
		       "sample saw",
		       (long long)status->unwaited, most);
	return text;
}

static const char *kernel_reason(const struct sy_status *status, char *text, size_t size)
{
	(void)snprintf(text, size,
		       "the kernel counted the job's processes and stopped: %s; what had come and "
		       "gone until then may lack",
		       status->bpf_why);
	return text;
}

/* Processes whose last moments nobody has told. */
static const char *lost_reason(const struct sy_status *status, char *text, size_t size)
{
	if (status->unwaited)
		return unwaited_reason(status, text, size);
	if (status->silent_roots)
		(void)snprintf(text, size,
			       "%lld steps' daemons ended without telling their final counters: "
			       "cpu and io lack what the steps did after their last sample, and "
			       "what came and went between two",
			       (long long)status->silent_roots);
	else if (status->outliving)
		(void)snprintf(text, size,
			       "%lld processes of the job were still at work when it ended: cpu "
			       "and io lack what they did from then on",
			       (long long)status->outliving);
	else
		return NULL;
	return text;
}

/* Why what its processes have used may be too little, or too much. */
static const char *processes_reason(const struct sy_status *status, char *text, size_t size)
{
	if (status->overflowed)
		(void)snprintf(text, size,
			       "more than %d processes at once: the others were not "
			       "counted",
			       SY_MAX_PROCESSES);
	else if (status->cpu_held_us)
		(void)snprintf(text, size,
			       "the job's processes were found to have used %.2f s more CPU than "
			       "the node's CPUs can give in that time: not counted in cpu_s",
			       (double)status->cpu_held_us / 1e6);
	else if (status->attached)
		(void)snprintf(
		    text, size,
		    "pbs_attach brought %lld processes: neither kernel nor cgroup counts "
		    "them, and what they and theirs used is not in here",
		    (long long)status->attached);
	else if (status->bpf_stopped && status->io_source == SY_SOURCE_PROCESSES)
		return kernel_reason(status, text, size);
	else if (status->group_gone)
		return "the job's cgroup was removed before it was read for the last time: cpu "
		       "lacks what the job did after the last sample that saw it";
	else if (status->io_unseen && status->unwaited_io)
		(void)snprintf(text, size,
			       "%lld processes ended before their last counters could be read, "
			       "without anyone's waiting for them: their I/O is not known",
			       (long long)status->unwaited_io);
	else if (status->io_unseen)
		(void)snprintf(
		    text, size,
		    "processes that no sample saw and nobody waited for have used %.2f s "
		    "of CPU (%.0f %% of the job's): their I/O is not known",
		    (double)status->unseen.us / 1e6,
		    100.0 * (double)status->unseen.us / (double)status->unseen.group_us);
	else if (status->io_unsure_bytes > SY_UNSURE_BYTES)
		(void)snprintf(text, size,
			       "a step's daemon was reading or writing at every look at what its "
			       "children had: io may be wrong by %lld bytes",
			       (long long)status->io_unsure_bytes);
	else
		return lost_reason(status, text, size);
	return text;
}

void sy_record_completeness(json_t *record, const struct sy_status *status, pid_t child, int ended)
{
	char text[256];
	const char *why = job_reason(status, child, ended, text, sizeof(text));

	sy_record_complete(record, why ? why : processes_reason(status, text, sizeof(text)));
	if (!why && !json_is_true(json_object_get(record, "complete")))
		(void)json_object_set_new(record, "incomplete_of", json_string("processes"));
}
