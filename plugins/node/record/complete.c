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
	else if (status->lost)
		(void)snprintf(text, size, "%lld samples could not be written: %s",
			       (long long)status->lost, strerror(status->lost_errno));
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

/* What a step's daemon itself may write while its step runs is allowed for (docs/calibrate.md). */
#define UNSURE_BYTES 1000

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
	else if (status->io_unsure_bytes > UNSURE_BYTES)
		(void)snprintf(text, size,
			       "a step's daemon was reading or writing at every look at what its "
			       "children had: io may be wrong by %lld bytes",
			       (long long)status->io_unsure_bytes);
	else if (status->unwaited)
		(void)snprintf(text, size,
			       "%lld processes at work ended without anyone's waiting for them: "
			       "cpu and io lack what they did after their last sample, and others "
			       "like them that no sample saw",
			       (long long)status->unwaited);
	else
		return NULL;
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
