/* CPU of a job under Slurm's cgroups of version 2, where the job's own cgroup has more than the
 * job.
 *
 * Each step has JOB/step_X there: its slurmstepd in step_X/slurm, its tasks in step_X/user. So
 * JOB/cpu.stat holds what every slurmstepd uses, 0.1 to 0.25 s of it at a step's end in a guest,
 * above the limit of cpu_tolerance.h; and it cannot be subtracted, as the daemon's group is gone by
 * then. CPU is the sum over step_X/user instead. A step that is too short to be read there counts
 * with its report.
 *
 * In version 1 the job's cpuacct group holds no slurmstepd, and serves alone; so does the group of
 * pbs_cgroups. There no step group is found, and this is not used. */
#ifndef STEELYARD_COUNTERS_STEP_CGROUPS_H
#define STEELYARD_COUNTERS_STEP_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/cgroup.h"
#include "counters/processes.h"

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
