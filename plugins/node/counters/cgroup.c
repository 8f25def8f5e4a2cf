#include "counters/cgroup.h"

#include "base/file.h"
#include "counters/parse.h"

#include <stdio.h>

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

int sy_cgroup2_open_cpu(int root, const char *path)
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
	group->cpu_fd = sy_cgroup2_open_cpu(root, group->path);
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

int64_t sy_cgroup2_cpu_us(int fd, struct sy_cpu_parts *parts)
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
		return sy_cgroup2_cpu_us(group->cpu_fd, &parts);
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
		if (sy_cgroup2_cpu_us(group->cpu_fd, &parts) == SY_UNKNOWN ||
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
