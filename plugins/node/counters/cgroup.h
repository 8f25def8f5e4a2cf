/* CPU, memory and pressure of a job's cgroup, version 1 or 2; CPU of the cgroups of its steps. */
#ifndef STEELYARD_COUNTERS_CGROUP_H
#define STEELYARD_COUNTERS_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/samples.h"
#include "counters/processes.h"

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

/* --- whether two counts of one job's CPU agree: what one has beyond the other --- */

/* The two are read one after the other, some ms apart, on a busy node some ten, while the job's
 * last tasks end; and a step's daemon waits for forks that were in a group of tasks for a moment.
 * Older kernels round what a process has waited for, by 20 ms a process. 2 % beyond that is what
 * rounding may come to over thousands of short processes. */
#define SY_AGREEMENT_US	   100000
#define SY_AGREEMENT_SHARE 50 /* one part in so many: 2 % */

/* So much more one may have than the other, µs. */
static inline int64_t sy_agreement_us(int64_t counted_us)
{
	return SY_AGREEMENT_US + counted_us / SY_AGREEMENT_SHARE;
}

/* --- CPU of a job under Slurm's cgroups of version 2, where the job's own cgroup has more than the
 * job.
 *
 * Each step has JOB/step_X there: its slurmstepd in step_X/slurm, its tasks in step_X/user. So
 * JOB/cpu.stat holds what every slurmstepd uses, 0.1 to 0.25 s of it at a step's end in a guest,
 * above sy_agreement_us(); and it cannot be subtracted, as the daemon's group is gone by then. CPU
 * is the sum over step_X/user instead. A step that is too short to be read there counts with its
 * report.
 *
 * In version 1 the job's cpuacct group holds no slurmstepd, and serves alone; so does the group of
 * pbs_cgroups. There no step group is found, and this is not used. --- */

#define SY_MAX_STEPS 64 /* at once; CPU of more is what their processes show */

struct sy_step_group {
	pid_t daemon;
	int fd;		/* cpu.stat of its tasks; -1: not open */
	int tries;	/* how often its group was looked for */
	bool is_extern; /* what its group has counted first is no work of the job's */
	bool done;	/* its tasks have ended */
	int64_t zero_us;
	int64_t cpu_us;
	struct sy_cpu_parts parts; /* of what its group has counted */
};

struct sy_step_groups {
	struct sy_processes *all;
	int root;	  /* below which the groups' files are */
	bool known;	  /* one has been found */
	int64_t sleep_us; /* what the extern step's own `sleep` has used */
	int count;
	int64_t ended_us;	  /* of steps that had to make room, less what is not the job's */
	double split_us, user_us; /* of these: how much was split, and its user time */
	struct sy_step_group step[SY_MAX_STEPS];
};

/* `extern_daemon`: of the extern step, whose own `sleep` is in its group; or 0. */
void sy_step_groups_init(struct sy_step_groups *groups, struct sy_processes *all, int root,
			 pid_t extern_daemon);

/* A step begins. */
void sy_step_groups_add(struct sy_step_groups *groups, pid_t daemon);

/* Look for those whose daemon was not yet in its group, or not in that of the job. */
void sy_step_groups_find(struct sy_step_groups *groups);

/* All tasks of a step have ended; what its daemon has waited for. May be called twice. */
void sy_step_groups_done(struct sy_step_groups *groups, pid_t daemon, int64_t reported_us);

/* CPU time of all steps, µs; SY_UNKNOWN where none has such groups. */
int64_t sy_step_groups_cpu_us(struct sy_step_groups *groups);

/* The same as user and system time; -1: not known of more than a hundredth of it. */
int sy_step_groups_split_us(struct sy_step_groups *groups, int64_t *user, int64_t *system);

/* Of their counts so far this much belongs to the job. */
void sy_step_groups_count_from(struct sy_step_groups *groups, int64_t counted_us, int64_t used_us);

#endif
