/* A job whose processes are known by their cgroup. */
#include "bpf/job.h"

#include "base/file.h"
#include "bpf/system_call.h"

#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct grouping {
	struct sy_bpf *bpf;
	int root, taken;
	const char *path;
};

/* Recorded trees have other numbers. */
static bool is_cgroup(int fd, uint64_t hierarchy)
{
	struct statfs info;
	unsigned long kind = hierarchy ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;

	return fstatfs(fd, &info) == 0 && (unsigned long)info.f_type == kind;
}

static bool add_group_below(struct grouping *g, const char *mount, uint64_t hierarchy)
{
	char full[1024];
	struct stat info;
	struct sy_bpf_group key = {.hierarchy = hierarchy};
	cleanup_close int fd = -1;

	(void)snprintf(full, sizeof(full), "%s%s", mount, g->path);
	fd = sy_open_at(g->root, full);
	if (fd < 0 || !is_cgroup(fd, hierarchy) || fstat(fd, &info) < 0)
		return false;
	key.id = info.st_ino;
	if (sy_bpf_update(g->bpf->pin[SY_BPF_PIN_GROUPS], &key, &g->bpf->job, 0) == 0)
		g->taken++;
	return true;
}

/* A hierarchy is mounted under the names of all its controllers, with a link for each; a
 * hierarchy without controllers is mounted under its own name. */
static void add_hierarchy(struct grouping *g, char *controllers, uint64_t hierarchy)
{
	char mount[256], *rest = controllers, *one;

	if (!strncmp(controllers, "name=", 5))
		controllers += 5;
	(void)snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controllers);
	if (add_group_below(g, mount, hierarchy))
		return;
	while ((one = strsep(&rest, ","))) {
		(void)snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", one);
		if (add_group_below(g, mount, hierarchy) ||
		    (!strcmp(one, "cpuset") && add_group_below(g, "/dev/cpuset", hierarchy)))
			return;
	}
}

/* NUMBER:CONTROLLERS:PATH */
static void parse_line(struct grouping *g, char *line)
{
	char *end, *controllers;
	uint64_t hierarchy = strtoull(line, &end, 10);

	controllers = *end == ':' ? end + 1 : NULL;
	end = controllers ? strchr(controllers, ':') : NULL;
	if (!end)
		return;
	*end = '\0';
	if (hierarchy)
		add_hierarchy(g, controllers, hierarchy);
	else if (!add_group_below(g, "/sys/fs/cgroup", 0))
		(void)add_group_below(g, "/sys/fs/cgroup/unified", 0);
}

int sy_bpf_group(struct sy_bpf *bpf, int root, const char *path, struct sy_error *err)
{
	struct grouping g = {.bpf = bpf, .root = root, .path = path};
	char text[4096], *rest = text, *line;
	ssize_t length = sy_read_path("/proc/self/cgroup", text, sizeof(text));

	if (length <= 0)
		return sy_fail_errno(err, (int)-length, "/proc/self/cgroup");
	while ((line = strsep(&rest, "\n")))
		parse_line(&g, line);
	return g.taken ? 0 : sy_fail(err, "there is no cgroup %s, or no room for it", path);
}

int sy_bpf_adopt_group(struct sy_bpf *bpf, struct sy_error *err)
{
	struct sy_bpf_request request = {.job = bpf->job};
	int result = sy_bpf_send_request(bpf, SY_BPF_PIN_ADOPT_GROUP, &request);

	if (result < 0)
		return sy_fail_errno(err, -result, "the kernel does not look at cgroups");
	return (int)request.found;
}
