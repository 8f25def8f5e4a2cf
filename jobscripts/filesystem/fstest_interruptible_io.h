/* Reads, writes and syncs until a signal stops it: -1 with errno; EINTR is retried unless a signal
 * requested the end. Part of fstest.c. */
#ifndef FSTEST_INTERRUPTIBLE_IO_H
#define FSTEST_INTERRUPTIBLE_IO_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
	stopped_by = signal;
}

static int write_all(int fd, const char *buffer, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = stopped_by ? (errno = EINTR, -1) : write(fd, buffer, bytes);

		if (n < 0 && errno == EINTR && !stopped_by)
			continue;
		if (n < 0)
			return -1;
		buffer += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static ssize_t read_some(int fd, char *buffer, size_t bytes)
{
	ssize_t n;

	do {
		n = stopped_by ? (errno = EINTR, -1) : read(fd, buffer, bytes);
	} while (n < 0 && errno == EINTR && !stopped_by);
	return n;
}

static int sync_fd(int fd)
{
	int rc;

	do {
		rc = fsync(fd);
	} while (rc < 0 && errno == EINTR && !stopped_by);
	return rc;
}

static int sync_and_close(int fd, bool sync)
{
	int rc = sync ? sync_fd(fd) : 0, saved_errno = errno;

	/* close() reports what a network file system could not write. */
	if (close(fd) < 0 && rc == 0)
		return -1;
	errno = saved_errno;
	return rc;
}

#endif
