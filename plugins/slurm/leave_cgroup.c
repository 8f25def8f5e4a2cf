#include "leave_cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void add_path(struct sy_way_out *way, const char *mount, const char *path, size_t length,
		     const char *below)
{
	if (way->count < SY_WAY_OUT_MAX)
		(void)snprintf(way->paths[way->count++], sizeof(way->paths[0]),
			       "/sys/fs/cgroup%s%.*s%s/cgroup.procs", mount, (int)length, path,
			       below);
}

/* Version 1: SLURM/uid_U/job_J/…: go up to SLURM, which slurmd made. */
static void add_v1(struct sy_way_out *way, const char *controllers, const char *path, size_t length)
{
	const char *user = memmem(path, length, "/uid_", 5);
	char mount[128];

	if (user)
		length = (size_t)(user - path);
	/* "name=systemd" is mounted as "systemd". */
	(void)snprintf(mount, sizeof(mount), "/%s",
		       strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers);
	add_path(way, mount, path, length, "");
}

/* Version 2: SCOPE/job_J/…: a group with controllers holds no processes, so SCOPE/system, which
 * slurmd made for its own, or else SCOPE. */
static void add_v2(struct sy_way_out *way, const char *path, size_t length)
{
	add_path(way, "", path, length, "/system");
	add_path(way, "/unified", path, length, "/system");
	add_path(way, "", path, length, "");
	add_path(way, "/unified", path, length, "");
}

/* One line: ID:CONTROLLERS:PATH */
static void add_line(struct sy_way_out *way, char *line)
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
		add_v1(way, controllers, path, (size_t)(job - path));
	else
		add_v2(way, path, (size_t)(job - path));
}

void sy_way_out_read(struct sy_way_out *way, const char *cgroups)
{
	cleanup_free char *text = strdup(cgroups);
	char *rest = NULL;

	way->count = 0;
	if (!text)
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		add_line(way, line);
}

void sy_way_out_find(struct sy_way_out *way)
{
	char text[8192];
	cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	way->count = 0;
	if (fd >= 0 && sy_read_fd(fd, text, sizeof(text)) > 0)
		sy_way_out_read(way, text);
}

void sy_leave_cgroup(const struct sy_way_out *way)
{
	for (size_t i = 0; i < way->count; i++) {
		int fd = open(way->paths[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (write(fd, "0", 1) < 0) /* 0: the writer itself */
			(void)fd;	   /* the next path may do */
		(void)close(fd);
	}
}
