/* Out of the cgroups that slurmd makes for a job. */
#ifndef STEELYARD_SLURM_LEAVE_CGROUP_H
#define STEELYARD_SLURM_LEAVE_CGROUP_H

#include "job/spawn.h"

/* Up to what slurmd made; nowhere when Slurm does not use cgroups. */
void sy_egress_from_slurm(struct sy_egress *way, const char *controllers, const char *path);

#endif
