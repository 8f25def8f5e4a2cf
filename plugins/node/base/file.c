#include "base/file.h"

#include "base/clock.h"
#include "base/kernel.h"
#include "base/shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

int sy_root_open(const char *dir, struct sy_error *err)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open the root folder %s", dir);
	return fd;
}

/* Kernels before 5.6 (RHEL 8) have no openat2; a plain openat is the same where root is "/". */
static int open_without_openat2(int root, const char *path)
{
	int fd = openat(root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? sy_short(errno) : fd;
}

int sy_open_at(int root, const char *path)
{
	struct sy_open_how how = {
	    .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
	    .resolve = SY_RESOLVE_IN_ROOT,
	};
	long fd;

	while (*path == '/')
		path++;
	fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		return open_without_openat2(root, *path ? path : ".");
	return fd < 0 ? sy_short(errno) : (int)fd;
}

ssize_t sy_read_fd(int fd, char *buffer, size_t size)
{
	size_t used = 0;

	while (used < size - 1) {
		ssize_t got = pread(fd, buffer + used, size - 1 - used, (off_t)used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	return (ssize_t)used;
}

ssize_t sy_read_at(int root, const char *path, char *buffer, size_t size)
{
	cleanup_close int fd = sy_open_at(root, path);

	buffer[0] = '\0';
	return fd < 0 ? fd : sy_read_fd(fd, buffer, size);
}

ssize_t sy_read_line_at(int root, const char *path, char *buffer, size_t size)
{
	ssize_t length = sy_read_at(root, path, buffer, size);

	if (length < 0)
		return length;
	buffer[strcspn(buffer, "\n")] = '\0';
	return (ssize_t)strlen(buffer);
}

bool sy_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length > tail && !strcmp(text + length - tail, end);
}

int sy_write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

bool sy_lock(int fd, int patience_ms)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + patience_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) ||
		    sy_now_ms(CLOCK_MONOTONIC) >= until_ms)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}
