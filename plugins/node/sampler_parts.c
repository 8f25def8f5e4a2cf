/* Parts of parent and child that need no state of theirs. */
#include "sampler.h"

#include "counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t sy_now_us(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
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

size_t sy_totals_json(const struct sy_sums *sums, char *text, size_t size)
{
	static const enum sy_cell cells[] = {SY_ELAPSED, SY_CPU, SY_RCHAR, SY_WCHAR, SY_READ,
					     SY_WRITE,	 SY_RX,	 SY_TX,	   SY_ENERGY};
	size_t used = 1;

	text[0] = '{';
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		bool micro = cells[i] == SY_ELAPSED || cells[i] == SY_CPU || cells[i] == SY_ENERGY;

		used = append(text, size - 1, used, sy_cell_name(cells[i]),
			      sums ? sums->last.cell[cells[i]] : SY_UNKNOWN, micro);
		if (cells[i] == SY_CPU)
			used = append(text, size - 1, used, "max_memory_bytes",
				      sums ? sums->max_memory : SY_UNKNOWN, false);
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
