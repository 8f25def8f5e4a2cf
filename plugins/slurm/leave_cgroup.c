#include "leave_cgroup.h"

#include <string.h>

#include "job_cgroup.h"

/* Version 1: SLURM/uid_U/job_J/…: go up to SLURM, which slurmd made. */
static void add_v1(struct sy_egress *way, const char *controllers, const char *path)
{
	const char *job = strstr(path, "/job_"), *user = strstr(path, "/uid_");
	size_t length;
	char mount[128];

	if (!job)
		return;
	length = (size_t)((user && user < job ? user : job) - path);
	sy_egress_mount(mount, sizeof(mount), controllers);
	sy_egress_add(way, mount, path, length, "");
}

/* Version 2: SCOPE/JOB/…: a group with controllers holds no processes, so SCOPE/system, which
 * slurmd made for its own, or else SCOPE. */
static void add_v2(struct sy_egress *way, const char *path)
{
	size_t length = sy_job_cgroup_of_stepd(path, strlen(path));
	const char *job = length > 0 ? memrchr(path, '/', length) : NULL;

	if (!job)
		return;
	length = (size_t)(job - path);
	sy_egress_add(way, "", path, length, "/system");
	sy_egress_add(way, "/unified", path, length, "/system");
	sy_egress_add(way, "", path, length, "");
	sy_egress_add(way, "/unified", path, length, "");
}

void sy_egress_from_slurm(struct sy_egress *way, const char *controllers, const char *path)
{
	if (*controllers)
		add_v1(way, controllers, path);
	else
		add_v2(way, path);
}
