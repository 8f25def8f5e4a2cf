/* Whether slurmctld has allocated to the job every core of this node that jobs may have. Slurm lets
 * no second job on such a node but where a partition oversubscribes: then the second job's sampler
 * meets the first one's (sy_control_meet_other_jobs), and neither job is alone.
 *
 * How many cores jobs may have, slurmctld knows (CPUs, CoreSpecCount, CpuSpecList of slurm.conf).
 * It is asked once in slurmd's life, by steelyard-slurmdb; the answer is in RUN_DIR/NODE.cores. */
#ifndef STEELYARD_SLURM_EXCLUSIVE_H
#define STEELYARD_SLURM_EXCLUSIVE_H

#include <slurm/spank.h>

#include "config.h"
#include "job/comment.h"

/* Unknown where several slurmd share a host, since no node is a job's own there, and where
 * slurmctld does not answer. */
enum sy_exclusive sy_exclusive_of(spank_t spank, const struct sy_config *config, const char *node);

/* slurm.conf may have changed: slurmctld is queried again. */
void sy_exclusive_forget(const char *run_dir);

#endif
