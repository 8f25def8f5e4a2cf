/* Contents of test files, and reading and writing that a signal can stop. Part of fstest.c. */
#ifndef FSTEST_IO_H
#define FSTEST_IO_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
	stopped_by = signal;
}

/* --- content: a function of file and offset, so that nothing need be kept to verify it ------- */

/* splitmix64 (Steele, Lea, Flood 2014): noise that no file system can compress. */
static uint64_t noise(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void fill(char *buffer, size_t bytes, uint64_t file, uint64_t offset)
{
	for (size_t i = 0; i < bytes;) {
		uint64_t at = offset + i, word = noise((file << 44) ^ (at / 8));
		size_t skip = at % 8, n = 8 - skip < bytes - i ? 8 - skip : bytes - i;

		memcpy(buffer + i, (const char *)&word + skip, n);
		i += n;
	}
}

/* --- reading and writing ----------------------------------------------------------------------
 * -1 with errno; EINTR is retried unless we were asked to stop. */

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
