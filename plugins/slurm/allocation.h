/* What of this node Slurm has allocated to the job: all of it, and which GPUs.
 *
 * It has all when every core that jobs may have is its own. Slurm lets
 * no second job on such a node but where a partition oversubscribes: then the second job's sampler
 * meets the first one's (sy_control_meet_other_jobs), and neither job is alone.
 *
 * How many cores jobs may have, slurmctld knows (CPUs, CoreSpecCount, CpuSpecList of slurm.conf).
 * It is asked once in slurmd's life, by steelyard-slurmdb; the answer is in RUN_DIR/NODE.cores. */
#ifndef STEELYARD_SLURM_ALLOCATION_H
#define STEELYARD_SLURM_ALLOCATION_H

#include <slurm/spank.h>

#include "config.h"
#include "job/comment.h"
#include "job/samplers.h"
#include "step_identity.h"

/* Unknown where several slurmd share a host, since no node is a job's own there, and where
 * slurmctld does not answer. */
enum sy_exclusive sy_exclusive_of(spank_t spank, const struct sy_config *config, const char *node);

/* slurm.conf may have changed: slurmctld is queried again. */
void sy_exclusive_forget(const char *run_dir);

/* Report a task's GPUs to the sampler: `gpus LISTED OPEN DENIED` (docs/formats.md part 4). In the
 * task's own process, as the user and in its cgroup: access(2) shows which devices it may
 * open (it heeds a cgroup's devices), and nothing is opened. Where neither Slurm nor the node has
 * GPUs, nothing is sent. */
void sy_own_gpus_report(spank_t spank, const struct sy_step *step, struct sy_message_queue *queue);

#endif
