#include "job/cgroup_exit.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sy_egress_add(struct sy_egress *egress, const char *mount, const char *path, size_t length,
		   const char *below)
{
	int needed;

	if (egress->count >= SY_EGRESS_MAX)
		return;
	needed = snprintf(egress->paths[egress->count], sizeof(egress->paths[0]),
			  "/sys/fs/cgroup%s%.*s%s/cgroup.procs", mount, (int)length, path, below);
	/* A path that is cut leads elsewhere. */
	if (needed >= 0 && (size_t)needed < sizeof(egress->paths[0]))
		egress->count++;
}

void sy_egress_mount(char *mount, size_t size, const char *controllers)
{
	/* "name=systemd" is mounted as "systemd". */
	(void)snprintf(mount, size, "/%s",
		       strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers);
}

/* A process at the top stays there. */
void sy_egress_to_top(struct sy_egress *egress, const char *controllers, const char *path)
{
	char mount[128];

	if (strcmp(path, "/") == 0)
		return;
	if (*controllers) {
		sy_egress_mount(mount, sizeof(mount), controllers);
		sy_egress_add(egress, mount, "", 0, "");
	} else {
		sy_egress_add(egress, "", "", 0, "");
		sy_egress_add(egress, "/unified", "", 0, "");
	}
}

/* One line: ID:CONTROLLERS:PATH */
static void read_cgroup_line(struct sy_egress *egress, char *line, sy_egress_rule rule)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return;
	*path++ = '\0';
	rule(egress, controllers + 1, path);
}

void sy_egress_read(struct sy_egress *egress, const char *cgroups, sy_egress_rule rule)
{
	cleanup_free char *text = strdup(cgroups);
	char *rest = NULL;

	egress->count = 0;
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		read_cgroup_line(egress, line, rule);
}

void sy_egress_find(struct sy_egress *egress, sy_egress_rule rule)
{
	char text[8192];

	egress->count = 0;
	if (sy_read_path("/proc/self/cgroup", text, sizeof(text)) > 0)
		sy_egress_read(egress, text, rule);
}

void sy_leave_cgroup(const struct sy_egress *egress)
{
	for (size_t i = 0; i < egress->count; i++) {
		int fd = open(egress->paths[i], O_WRONLY | O_CLOEXEC);

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
