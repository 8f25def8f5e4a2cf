#include "job_cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define STEP  "/step_"
#define STEPD "/slurm" /* version 2: what slurmstepd itself has below its step's group */

/* ".../job_4711", at the end or followed by further levels. */
static size_t find_by_id(const char *path, size_t length, unsigned job_id)
{
	char mark[32];
	size_t size = (size_t)snprintf(mark, sizeof(mark), "/job_%u", job_id);
	const char *job = memmem(path, length, mark, size);
	size_t end = job ? (size_t)(job - path) + size : 0;

	return job && (end == length || path[end] == '/') ? end : 0;
}

/* The length of the part that is the whole job's in the path, of version 2, that a slurmstepd is
 * in; 0: Slurm has made no cgroup for it. */
static size_t find_of_stepd(const char *path, size_t length)
{
	size_t below = strlen(STEPD);
	const char *step;

	if (length < below || memcmp(path + length - below, STEPD, below) != 0)
		return 0;
	step = memrchr(path, '/', length - below);
	return step && strncmp(step, STEP, strlen(STEP)) == 0 ? (size_t)(step - path) : 0;
}

const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length)
{
	for (const char *at = cgroups; at && (at = strstr(at, ":/")); at = strchr(at, '\n')) {
		const char *path = at + 1;
		size_t path_length = strcspn(path, "\n");

		*length = find_by_id(path, path_length, job_id);
		if (*length == 0 && at > cgroups && at[-1] == ':') /* no controllers: version 2 */
			*length = find_of_stepd(path, path_length);
		if (*length > 0)
			return path;
	}
	return NULL;
}

bool sy_job_cgroup_read(const char *process, unsigned job_id, char *path, size_t size)
{
	char text[8192];
	const char *found;
	char file[64];
	size_t length;

	(void)snprintf(file, sizeof(file), "/proc/%s/cgroup", process);
	if (sy_read_path(file, text, sizeof(text)) <= 0)
		return false;
	found = sy_job_cgroup_find(text, job_id, &length);
	return found && snprintf(path, size, "%.*s", (int)length, found) < (int)size;
}

/* --- out of it --- */

/* Version 1: SLURM/uid_U/job_J/…: go up to SLURM, which slurmd made. */
static void add_v1(struct sy_egress *egress, const char *controllers, const char *path)
{
	const char *job = strstr(path, "/job_"), *user = strstr(path, "/uid_");
	size_t length;
	char mount[128];

	if (!job)
		return;
	length = (size_t)((user && user < job ? user : job) - path);
	sy_egress_mount(mount, sizeof(mount), controllers);
	sy_egress_add(egress, mount, path, length, "");
}

/* Version 2: SCOPE/JOB/…: a group with controllers holds no processes, so SCOPE/system, which
 * slurmd made for its own, or else SCOPE. */
static void add_v2(struct sy_egress *egress, const char *path)
{
	size_t length = find_of_stepd(path, strlen(path));
	const char *job = length > 0 ? memrchr(path, '/', length) : NULL;

	if (!job)
		return;
	length = (size_t)(job - path);
	sy_egress_add(egress, "", path, length, "/system");
	sy_egress_add(egress, "/unified", path, length, "/system");
	sy_egress_add(egress, "", path, length, "");
	sy_egress_add(egress, "/unified", path, length, "");
}

void sy_egress_from_slurm(struct sy_egress *egress, const char *controllers, const char *path)
{
	if (*controllers)
		add_v1(egress, controllers, path);
	else
		add_v2(egress, path);
}
