#include "sampler/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_in_use(int fd, const struct sockaddr_un *address)
{
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

/* Its inode may be that of one before. */
unsigned long long sy_control_made_ns(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (unsigned long long)info.st_ctim.tv_sec * 1000000000ULL +
					    (unsigned long long)info.st_ctim.tv_nsec
				      : 0;
}

static unsigned long long own_made_ns; /* at our start; 0: it did not exist */

bool sy_control_is_given_up(const struct sy_sampling *sampling)
{
	return sampling->control_made_ns && own_made_ns != sampling->control_made_ns;
}

void sy_control_remove(const struct sy_sampling *sampling)
{
	/* A new start of the same job may have put its own there. */
	if (sampling->control && own_made_ns && !sy_control_is_given_up(sampling) &&
	    sy_control_made_ns(sampling->control) == own_made_ns)
		(void)unlink(sampling->control);
}

static int set_own_time(const char *path, int fd)
{
	own_made_ns = path ? sy_control_made_ns(path) : 0;
	return fd;
}

int sy_control_open(const char *path, int given, struct sy_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, result;

	if (given >= 0)
		return fcntl(given, F_SETFD, FD_CLOEXEC) < 0
			   ? sy_fail_errno(err, errno, "--control-fd %d", given)
			   : set_own_time(path, given);
	if (!path)
		return -1;
	if (strlen(path) >= sizeof(address.sun_path))
		return sy_fail(err, "the socket's path is longer than %zu bytes: %s",
			       sizeof(address.sun_path) - 1, path);
	(void)strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	if (is_in_use(fd, &address)) {
		(void)close(fd);
		return sy_fail(err, "another sampler listens to %s", path);
	}
	(void)unlink(path);
	(void)fchmod(fd, 0600); /* bind(2) takes the mode from the descriptor */
	result = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	if (result < 0) {
		(void)sy_fail_errno(err, errno, "cannot make the socket %s", path);
		(void)close(fd);
		return -1;
	}
	return set_own_time(path, fd);
}
