/* Parts of parent and child that need no state of theirs. */
#include "counters/parse.h"
#include "sampler/sampler.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t sy_now_us(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t sy_start_unix_us(int64_t start_unix_s)
{
	int64_t now = sy_now_us(CLOCK_REALTIME), end = (start_unix_s + 1) * 1000000;

	return now >= end && now < end + 1000000 ? end - 1 : now;
}

void sy_child_signals(void (*on_term)(int))
{
	struct sigaction end = {.sa_handler = on_term};
	sigset_t term;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigaction(SIGTERM, &end, NULL);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &term, NULL);
	(void)setpgid(0, 0);
}

void sy_keep_note(struct sy_child *child, const char *text, int64_t *dropped)
{
	struct sy_shared *shared = child->shared;
	size_t used = atomic_load(&shared->notes_used), length = strlen(text) + 1;

	if (used + length > SY_NOTES_SIZE) {
		++*dropped;
		return;
	}
	memcpy(shared->notes + used, text, length);
	atomic_store(&shared->notes_used, used + length);
	(void)send(child->parent_fd, "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

uid_t sy_job_user(const struct sy_plan *plan)
{
	if (plan->has_owner)
		return plan->owner_uid;
	return geteuid() ? geteuid() : SY_ANY_USER;
}

int64_t sy_own_max_memory_bytes(void)
{
	char text[2048];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int64_t kilobytes;

	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		return SY_UNKNOWN;
	text[got] = '\0';
	if (!strstr(text, "VmHWM:") ||
	    sy_parse_number(strstr(text, "VmHWM:") + strlen("VmHWM:"), &kilobytes) < 0)
		return SY_UNKNOWN;
	return kilobytes * 1024;
}

int sy_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_max > 16384)
		limit.rlim_max = 16384;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur > 512 ? (int)limit.rlim_cur - 512 : 0;
}

static size_t append(char *text, size_t size, size_t used, const char *name, int64_t value,
		     bool micro)
{
	char number[40] = "null";
	int length;

	if (value != SY_UNKNOWN && micro)
		(void)snprintf(number, sizeof(number), "%lld.%06lld", (long long)value / 1000000,
			       (long long)value % 1000000);
	else if (value != SY_UNKNOWN)
		(void)snprintf(number, sizeof(number), "%lld", (long long)value);
	length =
	    snprintf(text + used, size - used, "%s\"%s\":%s", used > 1 ? "," : "", name, number);
	return used + (size_t)length;
}

size_t sy_totals_json(int64_t question, const struct sy_status *status, char *text, size_t size)
{
	const struct sy_sums *sums = &status->sums;
	int64_t unseen_us = status->unseen.known ? status->unseen.us : SY_UNKNOWN;
	size_t used = 1;

	text[0] = '{';
	if (question >= 0)
		used = append(text, size - 1, used, "question", question, false);
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		int64_t value = sy_sums_total(sums, (enum sy_total)i);

		if (sy_is_in_comment((enum sy_total)i))
			used = append(text, size - 1, used, fact->name,
				      i == SY_CPU_UNSEEN_S ? unseen_us : value,
				      sy_is_micro(fact->unit));
	}
	text[used++] = '}';
	return used;
}

const char *sy_incomplete_reason(const struct sy_status *status, pid_t child, int ended, char *text,
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
	else if (status->overflowed)
		(void)snprintf(text, size,
			       "more than %d processes at once: the others were not "
			       "counted",
			       SY_MAX_PROCESSES);
	else if (status->watch_lost)
		(void)snprintf(text, size,
			       "whoever was to tell the job's end was gone without a word: what "
			       "the job did after end_unix_s is not in here");
	else if (status->cpu_held_us)
		(void)snprintf(text, size,
			       "the job's processes were found to have used %.2f s more CPU than "
			       "the node's CPUs can give in that time: not counted in cpu_s",
			       (double)status->cpu_held_us / 1e6);
	else if (status->io_unseen)
		(void)snprintf(
		    text, size,
		    "processes that no sample saw and nobody waited for have used %.2f s "
		    "of CPU (%.0f %% of the job's): their I/O is not known",
		    (double)status->unseen.us / 1e6,
		    100.0 * (double)status->unseen.us / (double)status->unseen.group_us);
	else if (status->unwaited)
		(void)snprintf(text, size,
			       "%lld processes at work ended without anyone's waiting for them: "
			       "cpu and io lack what they did after their last sample, and others "
			       "like them that no sample saw",
			       (long long)status->unwaited);
	else if (status->dropped_notes)
		(void)snprintf(text, size, "%lld messages with tags did not fit into %d bytes",
			       (long long)status->dropped_notes, SY_NOTES_SIZE);
	else
		return NULL;
	return text;
}

void sy_add_own_memory(struct sy_status *status)
{
	int64_t own = sy_own_max_memory_bytes();

	if (own == SY_UNKNOWN || status->max_memory_bytes == SY_UNKNOWN)
		status->max_memory_bytes = SY_UNKNOWN;
	else
		status->max_memory_bytes += own;
}
