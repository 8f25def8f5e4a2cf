/* Which cgroup is the whole job's. Slurm has SCOPE/job_4711/step_…; from 26.05 on, with version 2
 * of cgroups, SCOPE/SLUID/step_… (cgroup.conf: CgroupJobIdPaths). No function of SPANK returns the
 * SLUID, but slurmstepd itself is in SCOPE/SLUID/step_…/slurm, where nobody else ever is: not even
 * a slurmd that runs in a job of another cluster, and what it starts without cgroups of its own. */
#ifndef STEELYARD_SLURM_JOB_CGROUP_H
#define STEELYARD_SLURM_JOB_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "job/spawn.h"

/* The job's cgroup in a text of /proc/PID/cgroup: where it begins, and its length; NULL: in none.
 */
const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length);

/* The same from /proc/PROCESS/cgroup, "self" or a number. */
bool sy_job_cgroup_read(const char *process, unsigned job_id, char *path, size_t size);

/* A rule for what must leave the job's cgroup: up to the group that slurmd made; nowhere where
 * Slurm does not use cgroups. */
void sy_egress_from_slurm(struct sy_egress *egress, const char *controllers, const char *path);

#endif
