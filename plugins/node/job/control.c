#include "job/control.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t number_of(const char *node, const char *job_id)
{
	uint64_t hash = 0xcbf29ce484222325U;

	for (int i = 0; i < 2; i++)
		for (const char *c = i ? job_id : node;; c++) {
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3U;
			if (!*c)
				break;
		}
	return hash;
}

bool sy_control_address(struct sockaddr_un *address, const char *run_dir, const char *node,
			const char *job_id)
{
	const size_t size = sizeof(address->sun_path);
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address->sun_path, size, "%s/%s.%s.sock", run_dir, node, job_id);
	if (length > 0 && (size_t)length < size)
		return true;
	length = snprintf(address->sun_path, size, "%s/job-%016llx.sock", run_dir,
			  (unsigned long long)number_of(node, job_id));
	return length > 0 && (size_t)length < size;
}

int sy_control_bind(const struct sockaddr_un *address, struct sy_error *err)
{
	int fd;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	(void)unlink(address->sun_path); /* of an earlier start of the same job */
	/* bind(2) takes the mode from the descriptor. Not by umask(2), which is of all threads. */
	(void)fchmod(fd, 0600);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		(void)sy_fail_errno(err, errno, "cannot make the socket %s", address->sun_path);
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

static int try_to_connect(const struct sockaddr_un *address)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : -errno;
}

bool sy_control_is_live(const struct sockaddr_un *address)
{
	return try_to_connect(address) == 0;
}

static bool is_stale(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return try_to_connect(&address) == -ECONNREFUSED;
}

static bool is_ours(const char *name, const char *node)
{
	size_t length = strlen(node);
	const char *ending = strrchr(name, '.');

	if (!ending || strcmp(ending, ".sock") != 0)
		return false;
	return strncmp(name, "job-", 4) == 0 ||
	       (strncmp(name, node, length) == 0 && name[length] == '.');
}

void sy_remove_stale_sockets(const char *run_dir, const char *node)
{
	struct dirent *entry;
	DIR *dir = opendir(run_dir);

	while (dir && (entry = readdir(dir))) {
		char path[4096];

		if (!is_ours(entry->d_name, node))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", run_dir, entry->d_name);
		if (is_stale(path))
			(void)unlink(path);
	}
	if (dir)
		(void)closedir(dir);
}
