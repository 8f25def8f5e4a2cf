#include "escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void plan_path(struct sy_escape *escape, const char *mount, const char *path, size_t length,
		      const char *below)
{
	if (escape->count < SY_ESCAPE_MAX)
		(void)snprintf(escape->paths[escape->count++], sizeof(escape->paths[0]),
			       "/sys/fs/cgroup%s%.*s%s/cgroup.procs", mount, (int)length, path,
			       below);
}

/* Version 1: SLURM/uid_U/job_J/…: go up to SLURM, which slurmd made. */
static void plan_v1(struct sy_escape *escape, const char *controllers, const char *path,
		    size_t length)
{
	const char *user = memmem(path, length, "/uid_", 5);
	char mount[128];

	if (user)
		length = (size_t)(user - path);
	/* "name=systemd" is mounted as "systemd". */
	(void)snprintf(mount, sizeof(mount), "/%s",
		       strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers);
	plan_path(escape, mount, path, length, "");
}

/* Version 2: SCOPE/job_J/…: a group with controllers holds no processes, so SCOPE/system, which
 * slurmd made for its own, or else SCOPE. */
static void plan_v2(struct sy_escape *escape, const char *path, size_t length)
{
	plan_path(escape, "", path, length, "/system");
	plan_path(escape, "/unified", path, length, "/system");
	plan_path(escape, "", path, length, "");
	plan_path(escape, "/unified", path, length, "");
}

/* One line: ID:CONTROLLERS:PATH */
static void plan_line(struct sy_escape *escape, char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	const char *job;

	if (!path || path[1] != '/')
		return;
	*path++ = '\0';
	controllers++;
	job = strstr(path, "/job_");
	if (!job)
		return;
	if (*controllers)
		plan_v1(escape, controllers, path, (size_t)(job - path));
	else
		plan_v2(escape, path, (size_t)(job - path));
}

void sy_escape_plan(struct sy_escape *escape, const char *cgroups)
{
	cleanup_free char *text = strdup(cgroups);
	char *rest = NULL;

	escape->count = 0;
	if (!text)
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		plan_line(escape, line);
}

void sy_escape_prepare(struct sy_escape *escape)
{
	char text[8192];
	cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	escape->count = 0;
	if (fd >= 0 && sy_read_fd(fd, text, sizeof(text)) > 0)
		sy_escape_plan(escape, text);
}

void sy_escape_run(const struct sy_escape *escape)
{
	for (size_t i = 0; i < escape->count; i++) {
		int fd = open(escape->paths[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (write(fd, "0", 1) < 0) /* 0: the writer itself */
			(void)fd;	   /* the next path may do */
		(void)close(fd);
	}
}

size_t sy_job_cgroup_length(const char *path, unsigned job_id)
{
	char mark[32];
	const char *job;
	size_t length;

	length = (size_t)snprintf(mark, sizeof(mark), "/job_%u", job_id);
	job = strstr(path, mark);
	if (!job || (job[length] != '/' && job[length] != '\0' && job[length] != '\n'))
		return 0;
	return (size_t)(job - path) + length;
}

const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length)
{
	for (const char *at = cgroups; at && (at = strstr(at, ":/")); at = strchr(at, '\n')) {
		*length = sy_job_cgroup_length(at + 1, job_id);
		if (*length > 0 && !memchr(at, '\n', *length + 1))
			return at + 1;
	}
	return NULL;
}
