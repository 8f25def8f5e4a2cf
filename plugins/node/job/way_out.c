#include "job/way_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

void sy_way_out_add(struct sy_way_out *way, const char *mount, const char *path, size_t length,
		    const char *below)
{
	if (way->count < SY_WAY_OUT_MAX)
		(void)snprintf(way->paths[way->count++], sizeof(way->paths[0]),
			       "/sys/fs/cgroup%s%.*s%s/cgroup.procs", mount, (int)length, path,
			       below);
}

void sy_way_out_mount(char *mount, size_t size, const char *controllers)
{
	/* "name=systemd" is mounted as "systemd". */
	(void)snprintf(mount, size, "/%s",
		       strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers);
}

/* Who is at the top already stays. */
void sy_way_out_top(struct sy_way_out *way, const char *controllers, const char *path)
{
	char mount[128];

	if (strcmp(path, "/") == 0)
		return;
	if (*controllers) {
		sy_way_out_mount(mount, sizeof(mount), controllers);
		sy_way_out_add(way, mount, "", 0, "");
	} else {
		sy_way_out_add(way, "", "", 0, "");
		sy_way_out_add(way, "/unified", "", 0, "");
	}
}

/* One line: ID:CONTROLLERS:PATH */
static void read_line(struct sy_way_out *way, char *line, sy_way_out_rule rule)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return;
	*path++ = '\0';
	rule(way, controllers + 1, path);
}

void sy_way_out_read(struct sy_way_out *way, const char *cgroups, sy_way_out_rule rule)
{
	cleanup_free char *text = strdup(cgroups);
	char *rest = NULL;

	way->count = 0;
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		read_line(way, line, rule);
}

void sy_way_out_find(struct sy_way_out *way, sy_way_out_rule rule)
{
	char text[8192];
	cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	way->count = 0;
	if (fd >= 0 && sy_read_fd(fd, text, sizeof(text)) > 0)
		sy_way_out_read(way, text, rule);
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

int sy_join_cgroup(const pid_t *pids, int count, const char *path, struct sy_error *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[16];

	for (int i = 0; i < count; i++) {
		int length = snprintf(text, sizeof(text), "%d", (int)pids[i]);

		if (fd < 0 || write(fd, text, (size_t)length) != length)
			return sy_fail_errno(err, errno, "process %d cannot be put into %s",
					     (int)pids[i], path);
	}
	return 0;
}
