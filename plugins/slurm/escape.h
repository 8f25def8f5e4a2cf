/* Leaving the job's cgroups, so that the sampler is neither killed nor accounted with the job. */
#ifndef STEELYARD_SLURM_ESCAPE_H
#define STEELYARD_SLURM_ESCAPE_H

#include <stddef.h>

#define SY_ESCAPE_MAX 48

struct sy_escape {
	size_t count;
	char paths[SY_ESCAPE_MAX][320]; /* cgroup.procs files, in the order to try */
};

/* Find out where to go from /proc/self/cgroup; before the fork, since it uses more than system
 * calls. Nothing to do (count 0) when Slurm does not use cgroups. */
void sy_escape_prepare(struct sy_escape *escape);

/* The same from a given text of /proc/PID/cgroup, for tests. */
void sy_escape_plan(struct sy_escape *escape, const char *cgroups);

/* Go: system calls only. */
void sy_escape_run(const struct sy_escape *escape);

/* The length of a cgroup path's part that is the whole job's (".../job_4711"), 0: in no job. */
size_t sy_job_cgroup_length(const char *path, unsigned job_id);

/* The same found in a text of /proc/PID/cgroup: where it begins, and its length; NULL: in no job.
 */
const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length);

#endif
