/* Which processes are the job's: those of its cgroup, those with a mark in their environment that a
 * daemon of the scheduler has started, and those that this process names, itself among them. */
#include "bpf/job.h"

#include "base/file.h"
#include "bpf/pins.h"
#include "bpf/system_call.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PASSES 16 /* over all tasks, when more and more of the job's are found */

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

/* A job whose processes are known by a mark in their environment, and by the daemon that starts
 * them. */

/* The daemon may be registered for another job already. */
static int add_starter(struct sy_bpf *bpf, pid_t daemon, __u64 *number, struct sy_error *err)
{
	struct sy_bpf_request request = {
	    .job = ~bpf->job, .pid = (uint32_t)daemon, .kind = SY_BPF_STARTER};
	int result = sy_bpf_send_request(bpf, SY_BPF_PIN_ADOPT, &request);

	if (result < 0)
		return sy_fail_errno(err, -result, "the kernel does not take process %d",
				     (int)daemon);
	if (request.other_jobs || !request.found)
		return sy_fail(err, request.other_jobs
					? "the daemon that starts the job is of another "
					  "job itself"
					: "the daemon that starts the job is gone");
	*number = request.job;
	return 0;
}

int sy_bpf_mark(struct sy_bpf *bpf, pid_t daemon, const char *mark, uid_t uid, struct sy_error *err)
{
	struct sy_bpf_marked marked = {.job = bpf->job, .uid = uid};
	struct sy_bpf_mark key = {0};
	cleanup_close int marks = sy_bpf_open(bpf->base, "marks");
	int result;

	if (marks < 0)
		return sy_fail(err, "nothing of this release is pinned in %s", bpf->base);
	if (strlen(mark) >= sizeof(key.text))
		return sy_fail(err, "%.60s...: expected less than %zu bytes", mark,
			       sizeof(key.text));
	(void)strcpy(key.text, mark);
	if (add_starter(bpf, daemon, &key.starter, err) < 0)
		return -1;
	result = sy_bpf_update(marks, &key, &marked, 0);
	return result < 0 ? sy_fail_errno(err, -result, "there is no room for the job's mark") : 0;
}

uint64_t sy_bpf_count_unread(const struct sy_bpf *bpf)
{
	const uint32_t zero = 0;
	uint64_t count = 0;

	(void)sy_bpf_lookup(bpf->pin[SY_BPF_PIN_UNREAD], &zero, &count);
	return count;
}

/* --- requests that the program in the kernel makes a process, or this one, part of the job --- */

/* This process' id, and the namespace of process ids that it is valid in. */
static int read_own_id(struct sy_bpf_requester *requester)
{
	struct stat info;

	if (stat("/proc/self/ns/pid", &info) < 0)
		return -1;
	*requester = (struct sy_bpf_requester){(uint32_t)getpid(), (uint32_t)info.st_ino};
	return 0;
}

/* Let the program visit every task: 0, or -errno. */
static int run_iterator(int link)
{
	cleanup_close int tasks = sy_bpf_iterate(link);
	char nothing[64];
	ssize_t got;

	if (tasks < 0)
		return tasks;
	while ((got = read(tasks, nothing, sizeof(nothing))) != 0)
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

int sy_bpf_send_request(const struct sy_bpf *bpf, enum sy_bpf_pin program,
			struct sy_bpf_request *request)
{
	struct sy_bpf_requester requester;
	uint64_t before;
	int result = read_own_id(&requester) < 0 ? -errno : 0;

	if (result == 0)
		result = sy_bpf_update(bpf->pin[SY_BPF_PIN_REQUESTS], &requester, request, 0);
	for (int i = 0; result == 0 && i < PASSES; i++) {
		before = request->added;
		result = run_iterator(bpf->pin[program]);
		if (result == 0)
			result = sy_bpf_lookup(bpf->pin[SY_BPF_PIN_REQUESTS], &requester, request);
		if (request->added == before)
			break;
	}
	(void)sy_bpf_delete(bpf->pin[SY_BPF_PIN_REQUESTS], &requester);
	return result;
}

static int check_request(const struct sy_bpf_request *request, int result, struct sy_error *err)
{
	if (result < 0)
		return sy_fail_errno(err, -result, "the kernel does not take process %d",
				     (int)request->pid);
	if (request->other_jobs)
		return sy_fail(err, "a process of the job, or who measures it, is of another job");
	return request->found > 0;
}

int sy_bpf_adopt(struct sy_bpf *bpf, pid_t pid, enum sy_bpf_kind kind, int64_t faults,
		 struct sy_error *err)
{
	struct sy_bpf_request request = {
	    .job = bpf->job, .pid = (uint32_t)pid, .kind = kind, .faults = (uint64_t)faults};

	return check_request(&request, sy_bpf_send_request(bpf, SY_BPF_PIN_ADOPT, &request), err);
}

int sy_bpf_join(struct sy_bpf *bpf, enum sy_bpf_kind kind, struct sy_error *err)
{
	struct sy_bpf_request request = {
	    .job = bpf->job, .pid = (uint32_t)getpid(), .kind = kind, .faults = (uint64_t)-1};

	return check_request(&request,
			     sy_bpf_run(bpf->pin[SY_BPF_PIN_JOIN], &request, sizeof(request)),
			     err) < 0
		   ? -1
		   : 0;
}
