/* Leaving the job's cgroups, so that the sampler is neither killed nor accounted with the job. */
#ifndef STEELYARD_SLURM_LEAVE_CGROUP_H
#define STEELYARD_SLURM_LEAVE_CGROUP_H

#include <stddef.h>

#define SY_WAY_OUT_MAX 48

struct sy_way_out {
	size_t count;
	char paths[SY_WAY_OUT_MAX][320]; /* cgroup.procs files, in the order to try */
};

/* Find out where to go from /proc/self/cgroup; before the fork, since it uses more than system
 * calls. Nothing to do (count 0) when Slurm does not use cgroups. */
void sy_way_out_find(struct sy_way_out *way);

/* The same from a given text of /proc/PID/cgroup, for tests. */
void sy_way_out_read(struct sy_way_out *way, const char *cgroups);

/* Go: system calls only. */
void sy_leave_cgroup(const struct sy_way_out *way);

#endif
