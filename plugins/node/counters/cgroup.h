/* CPU, memory and pressure of a job's cgroup, version 1 or 2. */
#ifndef STEELYARD_COUNTERS_CGROUP_H
#define STEELYARD_COUNTERS_CGROUP_H

#include <stdint.h>

#include "base/samples.h"

enum sy_source {
	SY_SOURCE_NONE,
	SY_SOURCE_CGROUP1,
	SY_SOURCE_CGROUP2,
	SY_SOURCE_PROCESSES,
	SY_SOURCE_RUSAGE,
	SY_SOURCE_REAPED,
	SY_SOURCE_BPF,
	SY_SOURCES
};

/* The name in the record; NULL for SY_SOURCE_NONE. */
const char *sy_source_name(enum sy_source source);

struct sy_cgroup {
	char path[512]; /* as in /proc/PID/cgroup; "" when there is none */
	int cpu_fd, memory_stat_fd, memory_peak_fd;
	int pressure_fd[3]; /* cpu, io, memory; version 2 only */
	enum sy_source cpu_source, memory_source;
	int64_t zero_us, user_zero,
	    system_zero; /* what does not count; the latter as split below */
};

void sy_cgroup_init(struct sy_cgroup *group);

/* Open the group's files below `root`; what is not there stays closed, its source NONE. */
void sy_cgroup_open(struct sy_cgroup *group, int root, const char *path);

/* Those of its files that were not there yet. */
void sy_cgroup_open_missing(struct sy_cgroup *group, int root);

/* Read no CPU time from it, or no memory, any more: the job is not in it. */
void sy_cgroup_close_cpu(struct sy_cgroup *group);
void sy_cgroup_close_memory(struct sy_cgroup *group);

/* CPU time, µs, or SY_UNKNOWN. */
int64_t sy_cgroup_cpu_us(struct sy_cgroup *group);

struct sy_cpu_parts {
	int64_t user_us, system_us; /* SY_UNKNOWN: not available */
};

/* The same for any group of version 2: a descriptor, or -1; its CPU time, and its split. */
int sy_cgroup2_open_cpu(int root, const char *path);
int64_t sy_cgroup2_cpu_us(int fd, struct sy_cpu_parts *parts);

/* The job has used `used_us` by the time the group had counted `counted_us`: the difference is not
 * its own (an earlier job of the same id has left the group behind), or was used before its
 * processes were put there. */
void sy_cgroup_count_from(struct sy_cgroup *group, int root, int64_t counted_us, int64_t used_us);

/* User and system time of it, µs: 0, or -1. */
int sy_cgroup_cpu_split_us(struct sy_cgroup *group, int root, int64_t *user, int64_t *system);

/* Anonymous memory and the larger of mapped files and shared memory (tmpfs, System V), or
 * SY_UNKNOWN. The charge (memory.current) does not show whether this has changed: at its limit the
 * kernel exchanges page cache for anonymous memory, and the charge stays. */
int64_t sy_cgroup_memory_bytes(const struct sy_cgroup *group);

/* The highest charge in the group's life, page cache included, or SY_UNKNOWN. */
int64_t sy_cgroup_charged_peak_bytes(const struct sy_cgroup *group);

#endif
