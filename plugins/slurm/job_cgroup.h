/* Which part of a cgroup's path is the whole job's. */
#ifndef STEELYARD_SLURM_JOB_CGROUP_H
#define STEELYARD_SLURM_JOB_CGROUP_H

#include <stddef.h>

/* The length of a cgroup path's part that is the whole job's (".../job_4711"), 0: in no job. */
size_t sy_job_cgroup_length(const char *path, unsigned job_id);

/* The same found in a text of /proc/PID/cgroup: where it begins, and its length; NULL: in no job.
 */
const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length);

#endif
