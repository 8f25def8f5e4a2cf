#include "job/control_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "sampler/control_socket.h"

#define FULL_QUEUE_US 100000

bool sy_control_address(struct sockaddr_un *address, const char *run_dir, const char *node,
			const char *job_id)
{
	const size_t size = sizeof(address->sun_path);
	uint64_t hash;
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address->sun_path, size, "%s/%s.%s.sock", run_dir, node, job_id);
	if (length > 0 && (size_t)length < size)
		return true;
	hash = sy_hash(sy_hash(SY_HASH, node, strlen(node) + 1), job_id, strlen(job_id) + 1);
	length = snprintf(address->sun_path, size, "%s/job-%016llx.sock", run_dir,
			  (unsigned long long)hash);
	return length > 0 && (size_t)length < size;
}

static bool is_control_socket(const char *name, const char *node)
{
	size_t length = strlen(node);
	const char *ending = strrchr(name, '.');

	if (!ending || strcmp(ending, ".sock") != 0)
		return false;
	return strncmp(name, "job-", 4) == 0 ||
	       (strncmp(name, node, length) == 0 && name[length] == '.');
}

/* The address of a directory's entry; false where it is no socket of the node's. */
static bool find_address(struct sockaddr_un *address, const char *run_dir, const char *name,
			 const char *node)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!is_control_socket(name, node))
		return false;
	length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", run_dir, name);
	return length > 0 && (size_t)length < sizeof(address->sun_path);
}

void sy_remove_stale_sockets(const char *run_dir, const char *node)
{
	struct sockaddr_un address;
	struct dirent *entry;
	cleanup_dir DIR *dir = opendir(run_dir);

	while (dir && (entry = readdir(dir)))
		if (find_address(&address, run_dir, entry->d_name, node) &&
		    sy_control_connect(&address) == -ECONNREFUSED)
			(void)unlink(address.sun_path);
}

/* A queue that stays full belongs to a living sampler. */
static bool send_not_exclusive(const struct sockaddr_un *address, int64_t until_us)
{
	static const char text[] = "exclusive no";
	int64_t remaining_us = until_us - sy_now_us(CLOCK_MONOTONIC);
	const struct timeval patience = {.tv_usec =
					     remaining_us > 0 ? remaining_us : 1}; /* 0: for ever */
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return false;
	return sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)address,
		      sizeof(*address)) >= 0 ||
	       errno == EAGAIN;
}

bool sy_control_meet_other_jobs(const char *run_dir, const char *node,
				const struct sockaddr_un *own)
{
	struct sockaddr_un address;
	struct dirent *entry;
	cleanup_dir DIR *dir = opendir(run_dir);
	int64_t until_us = sy_now_us(CLOCK_MONOTONIC) + FULL_QUEUE_US; /* of all together */
	bool met = false;

	while (dir && (entry = readdir(dir)))
		if (find_address(&address, run_dir, entry->d_name, node) &&
		    strcmp(address.sun_path, own->sun_path) != 0)
			met |= send_not_exclusive(&address, until_us);
	return met;
}
