/* Slurm's groups of version 2: in that of a job each step has JOB/step_X, its daemon in
 * step_X/slurm and its tasks in step_X/user. What a daemon still uses at its end is in the job's
 * group, and can be told from the job's own no more; so CPU is read where only tasks are, and
 * summed up here. */
#ifndef STEELYARD_COUNTERS_STEP_GROUPS_H
#define STEELYARD_COUNTERS_STEP_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/cgroup.h"
#include "counters/processes.h"

#define SY_MAX_STEPS 64 /* at once; CPU of more is what their processes show */

struct sy_step_group {
	pid_t daemon;
	int fd;		/* cpu.stat of its tasks; -1: not open */
	int asked;	/* how often the daemon was asked where it is */
	bool of_keeper; /* the extern step's: what stands there first is no work of the job's */
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
	int64_t ended_us; /* of those that had to make room, and what was counted too much */
	double split_us, user_us; /* of those: how much came in parts, and the part in programs */
	struct sy_step_group step[SY_MAX_STEPS];
};

/* `keeper`: the daemon of the extern step, whose own `sleep` is in its group; or 0. */
void sy_step_groups_init(struct sy_step_groups *groups, struct sy_processes *all, int root,
			 pid_t keeper);

/* A step begins. */
void sy_step_groups_add(struct sy_step_groups *groups, pid_t daemon);

/* Look for those whose daemon was not yet in its group, or not in that of the job. */
void sy_step_groups_find(struct sy_step_groups *groups);

/* All tasks of a step have ended; what its daemon has waited for. May be told twice. */
void sy_step_groups_done(struct sy_step_groups *groups, pid_t daemon, int64_t told_us);

/* CPU time of all steps, µs; SY_UNKNOWN where none has such groups. */
int64_t sy_step_groups_cpu_us(struct sy_step_groups *groups);

/* The same in programs and in the kernel; -1: not told, of more than a hundredth of it. */
int sy_step_groups_split_us(struct sy_step_groups *groups, int64_t *user, int64_t *system);

/* Of what they have counted by now so much is the job's. */
void sy_step_groups_count_from(struct sy_step_groups *groups, int64_t counted_us, int64_t used_us);

#endif
