/* Reports a task's GPUs to the sampler: `gpus LISTED OPEN DENIED` (docs/formats.md part 4). */
#ifndef STEELYARD_SLURM_OWN_GPUS_H
#define STEELYARD_SLURM_OWN_GPUS_H

#include "job/sampler_messages.h"
#include "step_identity.h"

/* In the task's own process, as the user and in its cgroup: access(2) shows which devices it may
 * open (it heeds a cgroup's devices), and nothing is opened. Where neither Slurm nor the node has
 * GPUs, nothing is sent. */
void sy_own_gpus_report(spank_t spank, const struct sy_step *step, struct sy_message_queue *queue);

#endif
