#include "base/descriptors.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/kernel_uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define MOST_BLIND     65536 /* descriptors tried where /proc is not mounted */
#define OUT_OF_THE_WAY 10    /* above every descriptor that a program gets */

static void close_pipe(struct sy_pipe *pipe)
{
	if (pipe->fd >= 0)
		(void)close(pipe->fd);
	pipe->fd = -1;
}

static void read_pipe(struct sy_pipe *pipe)
{
	char rest[4096];
	size_t room = pipe->size - 1 - pipe->length;
	ssize_t got =
	    read(pipe->fd, room ? pipe->text + pipe->length : rest, room ? room : sizeof(rest));

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0)
		close_pipe(pipe);
	else if (room)
		pipe->length += (size_t)got;
	pipe->text[pipe->length] = '\0';
}

/* Wait until a pipe can be read. False: each is closed. */
static bool wait_for_pipes(struct sy_pipe *pipes, int count, int limit_ms)
{
	struct pollfd ready[SY_PIPES_MAX];
	bool any = false;

	for (int i = 0; i < count; i++) {
		ready[i] = (struct pollfd){.fd = pipes[i].fd, .events = POLLIN};
		any |= pipes[i].fd >= 0;
	}
	if (!any)
		return false;
	(void)poll(ready, (nfds_t)count, limit_ms);
	for (int i = 0; i < count; i++)
		if (ready[i].revents)
			read_pipe(&pipes[i]);
	return true;
}

bool sy_read_pipes(struct sy_pipe *pipes, int count, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;
	bool open = true, closed = true;

	while (open && (left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0)
		open = wait_for_pipes(pipes, count, (int)left);
	for (int i = 0; i < count; i++) {
		closed &= pipes[i].fd < 0;
		close_pipe(&pipes[i]);
	}
	return closed;
}

/* "12"; -1 for "." and "..". */
static int descriptor_of(const char *name)
{
	int value = *name >= '0' && *name <= '9' ? 0 : -1;

	for (; *name >= '0' && *name <= '9'; name++)
		value = value * 10 + (*name - '0');
	return value;
}

/* The kernel goes through that folder by number: what is closed meanwhile shifts nothing. */
static void close_listed(int folder, int first)
{
	char buffer[2048] __attribute__((aligned(8)));
	long got;

	while ((got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);
			int fd = descriptor_of(entry->name);

			if (fd >= first && fd != folder)
				(void)close(fd);
			at += entry->length;
		}
	}
}

static void close_all(int first)
{
	struct rlimit limit = {.rlim_cur = MOST_BLIND};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = first; fd < MOST_BLIND && (rlim_t)fd < limit.rlim_cur; fd++)
		(void)close(fd);
}

void sy_close_from(int first)
{
	int folder;

	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return;
	/* Before Linux 5.9, or a filter of system calls that does not know it. */
	folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		close_all(first);
		return;
	}
	close_listed(folder, first);
	(void)close(folder);
}

/* First all out of the way, then each to its number. */
void sy_keep_descriptors(const int *fds, int count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[SY_KEPT_MAX];

	for (int i = 0; i < count; i++)
		high[i] = fcntl(fds[i] >= 0 ? fds[i] : null, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	for (int i = 0; i < count; i++)
		(void)dup2(high[i], i);
	sy_close_from(count);
}

/* Descriptors are given from the lowest on. Closed in what we execute. */
void sy_open_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR | O_CLOEXEC);
}

void sy_silence_streams(int last)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= last && null >= 0; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
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
