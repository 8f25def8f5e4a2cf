#include "counters/cgroup.h"

#include "base/file.h"
#include "counters/parse.h"
#include "counters/process_table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where the hierarchies are mounted: systemd's places, and those of hosts without it. */
static const char *const cpu_mounts[] = {"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"};
static const char *const memory_mounts[] = {"/sys/fs/cgroup/memory"};
static const char *const unified_mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

static const char *const source_names[SY_SOURCES] = {
    NULL, "cgroup1", "cgroup2", "processes", "rusage", "reaped", "bpf",
};

const char *sy_source_name(enum sy_source source)
{
	return source < SY_SOURCES ? source_names[source] : NULL;
}

void sy_cgroup_init(struct sy_cgroup *group)
{
	*group = (struct sy_cgroup){
	    .cpu_fd = -1, .memory_stat_fd = -1, .memory_peak_fd = -1, .pressure_fd = {-1, -1, -1}};
}

static int open_in(int root, const char *const *mounts, size_t count, const char *path,
		   const char *file)
{
	char full[1024];
	int fd = -1;

	for (size_t i = 0; i < count && fd < 0; i++) {
		(void)snprintf(full, sizeof(full), "%s%s/%s", mounts[i], path, file);
		fd = sy_open_at(root, full);
	}
	return fd < 0 ? -1 : fd;
}

#define OPEN_IN(root, mounts, path, file)                                                          \
	open_in(root, mounts, sizeof(mounts) / sizeof((mounts)[0]), path, file)

/* The same for any group of version 2: a descriptor, or -1; its CPU time, and its split. */
static int open_cgroup2_cpu(int root, const char *path)
{
	return OPEN_IN(root, unified_mounts, path, "cpu.stat");
}

static void open_cpu(struct sy_cgroup *group, int root)
{
	group->cpu_source = SY_SOURCE_CGROUP1;
	group->cpu_fd = OPEN_IN(root, cpu_mounts, group->path, "cpuacct.usage");
	if (group->cpu_fd >= 0)
		return;
	group->cpu_source = SY_SOURCE_CGROUP2;
	group->cpu_fd = open_cgroup2_cpu(root, group->path);
	if (group->cpu_fd < 0)
		group->cpu_source = SY_SOURCE_NONE;
}

static void open_memory(struct sy_cgroup *group, int root)
{
	group->memory_source = SY_SOURCE_CGROUP1;
	group->memory_stat_fd = OPEN_IN(root, memory_mounts, group->path, "memory.stat");
	group->memory_peak_fd =
	    OPEN_IN(root, memory_mounts, group->path, "memory.max_usage_in_bytes");
	if (group->memory_stat_fd >= 0)
		return;
	group->memory_source = SY_SOURCE_CGROUP2;
	group->memory_stat_fd = OPEN_IN(root, unified_mounts, group->path, "memory.stat");
	group->memory_peak_fd = OPEN_IN(root, unified_mounts, group->path, "memory.peak");
	if (group->memory_stat_fd < 0)
		group->memory_source = SY_SOURCE_NONE;
}

void sy_cgroup_open_missing(struct sy_cgroup *group, int root)
{
	if (group->cpu_source == SY_SOURCE_NONE)
		open_cpu(group, root);
	if (group->memory_source == SY_SOURCE_NONE)
		open_memory(group, root);
}

void sy_cgroup_open(struct sy_cgroup *group, int root, const char *path)
{
	static const char *const pressure[] = {"cpu.pressure", "io.pressure", "memory.pressure"};

	(void)snprintf(group->path, sizeof(group->path), "%s", path);
	sy_cgroup_open_missing(group, root);
	for (int i = 0; i < 3; i++)
		group->pressure_fd[i] = OPEN_IN(root, unified_mounts, path, pressure[i]);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void sy_cgroup_close_cpu(struct sy_cgroup *group)
{
	close_fd(&group->cpu_fd);
	group->cpu_source = SY_SOURCE_NONE;
}

void sy_cgroup_close_memory(struct sy_cgroup *group)
{
	close_fd(&group->memory_stat_fd);
	close_fd(&group->memory_peak_fd);
	group->memory_source = SY_SOURCE_NONE;
}

static int64_t read_cgroup2_cpu_us(int fd, struct sy_cpu_parts *parts)
{
	char text[1024];
	int64_t value;

	if (sy_read_counters(fd, text, sizeof(text)) < 0 ||
	    sy_parse_keyed(text, "usage_usec", &value) < 0)
		return SY_UNKNOWN;
	if (sy_parse_keyed(text, "user_usec", &parts->user_us) < 0 ||
	    sy_parse_keyed(text, "system_usec", &parts->system_us) < 0)
		*parts = (struct sy_cpu_parts){SY_UNKNOWN, SY_UNKNOWN};
	return value;
}

static int64_t read_counted_us(struct sy_cgroup *group)
{
	struct sy_cpu_parts parts;
	char text[1024];
	int64_t value;

	if (group->cpu_source == SY_SOURCE_CGROUP2)
		return read_cgroup2_cpu_us(group->cpu_fd, &parts);
	if (sy_read_counters(group->cpu_fd, text, sizeof(text)) < 0)
		return SY_UNKNOWN;
	return sy_parse_number(text, &value) < 0 ? SY_UNKNOWN : value / 1000; /* ns */
}

int64_t sy_cgroup_cpu_us(struct sy_cgroup *group)
{
	int64_t counted = read_counted_us(group);

	return counted == SY_UNKNOWN ? SY_UNKNOWN : counted - group->zero_us;
}

/* Microseconds in version 2, clock ticks in version 1. */
static int read_split(struct sy_cgroup *group, int root, int64_t *user, int64_t *system)
{
	cleanup_close int user_fd = OPEN_IN(root, cpu_mounts, group->path, "cpuacct.usage_user");
	cleanup_close int system_fd = OPEN_IN(root, cpu_mounts, group->path, "cpuacct.usage_sys");
	char text[1024], other[64];
	struct sy_cpu_parts parts;

	if (group->cpu_source == SY_SOURCE_CGROUP2) {
		if (read_cgroup2_cpu_us(group->cpu_fd, &parts) == SY_UNKNOWN ||
		    parts.user_us == SY_UNKNOWN)
			return -1;
		*user = parts.user_us;
		*system = parts.system_us;
		return 0;
	}
	return sy_read_counters(user_fd, text, sizeof(text)) < 0 ||
		       sy_read_counters(system_fd, other, sizeof(other)) < 0 ||
		       sy_parse_number(text, user) < 0 || sy_parse_number(other, system) < 0
		   ? -1
		   : 0;
}

void sy_cgroup_count_from(struct sy_cgroup *group, int root, int64_t counted_us, int64_t used_us)
{
	int64_t counted = counted_us, user, system;

	group->zero_us = counted - used_us;
	if (counted <= used_us || read_split(group, root, &user, &system) < 0)
		return;
	/* The shares of the parts are unknown: each gets its proportion. */
	group->user_zero = (int64_t)((double)user * (double)group->zero_us / (double)counted);
	group->system_zero = (int64_t)((double)system * (double)group->zero_us / (double)counted);
}

/* Version 1 counts user and system time by clock ticks: only their proportion is of use. The kernel
 * does the same for processes and for version 2 (cputime_adjust). */
int sy_cgroup_cpu_split_us(struct sy_cgroup *group, int root, int64_t *user, int64_t *system)
{
	int64_t total = sy_cgroup_cpu_us(group);
	double parts;

	if (read_split(group, root, user, system) < 0)
		return -1;
	*user -= group->user_zero;
	*system -= group->system_zero;
	parts = (double)*user + (double)*system;
	if (total == SY_UNKNOWN || parts <= 0)
		return -1;
	*system = (int64_t)((double)total * ((double)*system / parts) + 0.5);
	*user = total - *system;
	return 0;
}

/* The total_ figures of version 1 are with the groups inside. Mapped shared memory is in both of
 * the last two figures, so that their sum would count it twice. */
int64_t sy_cgroup_memory_bytes(const struct sy_cgroup *group)
{
	bool first_version = group->memory_source == SY_SOURCE_CGROUP1;
	int64_t anonymous, mapped, shared = 0;
	char text[8192];

	if (sy_read_counters(group->memory_stat_fd, text, sizeof(text)) < 0 ||
	    sy_parse_keyed(text, first_version ? "total_rss" : "anon", &anonymous) < 0 ||
	    sy_parse_keyed(text, first_version ? "total_mapped_file" : "file_mapped", &mapped) < 0)
		return SY_UNKNOWN;
	/* Older kernels do not report it in version 1. */
	(void)sy_parse_keyed(text, first_version ? "total_shmem" : "shmem", &shared);
	return anonymous + (mapped > shared ? mapped : shared);
}

int64_t sy_cgroup_charged_peak_bytes(const struct sy_cgroup *group)
{
	int64_t bytes;
	char text[64];

	if (sy_read_counters(group->memory_peak_fd, text, sizeof(text)) < 0 ||
	    sy_parse_number(text, &bytes) < 0)
		return SY_UNKNOWN;
	return bytes;
}

#define TRIES	 3 /* a daemon enters its group at its start, or never */
#define DAEMON	 "/slurm"
#define OF_TASKS "user"

static struct sy_step_group *find_step(struct sy_step_groups *groups, pid_t daemon)
{
	for (int i = 0; i < groups->count; i++)
		if (groups->step[i].daemon == daemon)
			return &groups->step[i];
	return NULL;
}

/* If the step's cgroup splits its CPU time, add that time to `split` and its user time to
 * `user`. */
static void add_split(const struct sy_step_group *step, double *split, double *user)
{
	double parts = (double)step->parts.user_us + (double)step->parts.system_us;

	if (step->parts.user_us == SY_UNKNOWN || parts <= 0)
		return;
	*split += (double)step->cpu_us;
	*user += (double)step->cpu_us * ((double)step->parts.user_us / parts);
}

/* As late as possible: the end of one may be reported twice. */
static void make_room(struct sy_step_groups *groups)
{
	for (int i = 0; i < groups->count; i++) {
		if (!groups->step[i].done || groups->step[i].fd >= 0)
			continue;
		groups->ended_us += groups->step[i].cpu_us;
		add_split(&groups->step[i], &groups->split_us, &groups->user_us);
		groups->count--;
		memmove(&groups->step[i], &groups->step[i + 1],
			sizeof(groups->step[0]) * (size_t)(groups->count - i));
		return;
	}
}

static void add(struct sy_step_groups *groups, pid_t daemon, bool is_extern)
{
	struct sy_step_group *old = find_step(groups, daemon);

	if (old && !old->done)
		return;
	if (old)
		old->daemon = 0; /* its id was given again */
	if (groups->count == SY_MAX_STEPS)
		make_room(groups);
	if (groups->count < SY_MAX_STEPS)
		groups->step[groups->count++] =
		    (struct sy_step_group){.daemon = daemon,
					   .fd = -1,
					   .is_extern = is_extern,
					   .parts = {SY_UNKNOWN, SY_UNKNOWN}};
}

void sy_step_groups_init(struct sy_step_groups *groups, struct sy_processes *all, int root,
			 pid_t extern_daemon)
{
	*groups = (struct sy_step_groups){.all = all, .root = root};
	all->fds_after -= SY_MAX_STEPS;
	if (extern_daemon > 0)
		add(groups, extern_daemon, true);
}

void sy_step_groups_add(struct sy_step_groups *groups, pid_t daemon)
{
	add(groups, daemon, false);
}

/* Of "0::JOB/step_X/slurm" the group of the step's tasks. */
static bool tasks_group(const char *text, const char *job, char *path, size_t size)
{
	const char *at = strstr(text, "0::"), *end;
	size_t length = strlen(job);

	if (!at || (at > text && at[-1] != '\n') || strncmp(at + 3, job, length) != 0 ||
	    at[3 + length] != '/')
		return false;
	at += 3;
	end = at + strcspn(at, "\n");
	if ((size_t)(end - at) <= length + strlen(DAEMON) ||
	    strncmp(end - strlen(DAEMON), DAEMON, strlen(DAEMON)) != 0)
		return false;
	return (size_t)snprintf(path, size, "%.*s/" OF_TASKS, (int)(end - at) - (int)strlen(DAEMON),
				at) < size;
}

/* What its group has counted, less the extern step's `sleep`, which may still be starting. */
static int64_t counted_us(struct sy_step_groups *groups, struct sy_step_group *step)
{
	struct sy_cpu_parts parts;
	int64_t counted = step->fd < 0 ? SY_UNKNOWN : read_cgroup2_cpu_us(step->fd, &parts), clock;

	if (counted != SY_UNKNOWN)
		step->parts = parts;

	if (!step->is_extern || counted == SY_UNKNOWN)
		return counted;
	clock =
	    groups->all->extern_sleep ? sy_process_clock_ns(groups->all->extern_sleep) / 1000 : 0;
	if (clock > groups->sleep_us)
		groups->sleep_us = clock;
	return counted - groups->sleep_us;
}

static void read_one(struct sy_step_groups *groups, struct sy_step_group *step)
{
	int64_t counted = counted_us(groups, step);

	if (counted == SY_UNKNOWN) {
		if (step->fd >= 0)
			(void)close(step->fd);
		step->fd = -1;
		return;
	}
	if (counted - step->zero_us > step->cpu_us)
		step->cpu_us = counted - step->zero_us;
}

static void find_one(struct sy_step_groups *groups, struct sy_step_group *step)
{
	char text[4096], path[600];
	int64_t counted;

	step->tries++;
	if (sy_process_file(groups->all, step->daemon, "cgroup", NULL, text, sizeof(text)) <= 0 ||
	    !tasks_group(text, groups->all->cgroup, path, sizeof(path)))
		return;
	step->fd = open_cgroup2_cpu(groups->root, path);
	counted = counted_us(groups, step);
	if (step->is_extern && counted != SY_UNKNOWN)
		step->zero_us = counted;
	groups->known |= counted != SY_UNKNOWN;
	read_one(groups, step);
}

void sy_step_groups_find(struct sy_step_groups *groups)
{
	if (!groups->all || !groups->all->cgroup)
		return;
	for (int i = 0; i < groups->count; i++) {
		struct sy_step_group *step = &groups->step[i];

		if (step->daemon > 0 && step->fd < 0 && !step->done && step->tries < TRIES)
			find_one(groups, step);
	}
}

void sy_step_groups_done(struct sy_step_groups *groups, pid_t daemon, int64_t reported_us)
{
	struct sy_step_group *step = find_step(groups, daemon);

	if (!step)
		return;
	read_one(groups, step);
	step->done = true;
	if (reported_us > step->cpu_us)
		step->cpu_us = reported_us;
}

int64_t sy_step_groups_cpu_us(struct sy_step_groups *groups)
{
	int64_t sum = groups->ended_us;

	if (!groups->known)
		return SY_UNKNOWN;
	for (int i = 0; i < groups->count; i++) {
		read_one(groups, &groups->step[i]);
		sum += groups->step[i].cpu_us;
	}
	return sum;
}

#define UNSPLIT 0.01

int sy_step_groups_split_us(struct sy_step_groups *groups, int64_t *user, int64_t *system)
{
	int64_t total = sy_step_groups_cpu_us(groups);
	double split = groups->split_us, in_programs = groups->user_us;

	for (int i = 0; i < groups->count; i++)
		add_split(&groups->step[i], &split, &in_programs);
	if (total == SY_UNKNOWN || split <= 0 || split < (double)total * (1 - UNSPLIT))
		return -1;
	*user = (int64_t)((double)total * (in_programs / split) + 0.5);
	*system = total - *user;
	return 0;
}

void sy_step_groups_count_from(struct sy_step_groups *groups, int64_t counted_us, int64_t used_us)
{
	groups->ended_us += used_us - counted_us;
}
