#include "sampler/control_socket.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int sy_control_connect(const struct sockaddr_un *address)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0
		   ? -errno
		   : 0;
}

int sy_control_bind(const struct sockaddr_un *address, struct sy_error *err)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	(void)unlink(address->sun_path); /* of an earlier start of the same job */
	/* bind(2) takes the mode from the descriptor. Not by umask(2), which is of all threads. */
	(void)fchmod(fd, 0600);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return fd;
	(void)sy_fail_errno(err, errno, "cannot make the socket %s", address->sun_path);
	(void)close(fd);
	return -1;
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
	int fd;

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
	if (sy_control_connect(&address) == 0)
		return sy_fail(err, "another sampler listens to %s", path);
	fd = sy_control_bind(&address, err);
	if (fd < 0)
		return -1;
	return set_own_time(path, fd);
}
