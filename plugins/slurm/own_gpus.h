/* Which GPUs a task was given, told to the sampler: `gpus LISTED OPEN DENIED`
 * (docs/formats.md part 4). */
#ifndef STEELYARD_SLURM_OWN_GPUS_H
#define STEELYARD_SLURM_OWN_GPUS_H

#include "job/message_queue.h"
#include "step.h"

/* In the task's own process, as the user and in its cgroup: what it may open is asked of the kernel
 * (access(2) heeds a cgroup's devices), and nothing is opened. Where neither Slurm nor the node
 * knows of GPUs, nothing is said. */
void sy_own_gpus_report(spank_t spank, const struct sy_step *step, struct sy_message_queue *queue);

#endif
