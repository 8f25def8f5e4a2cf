/* At a job's end: its totals go into AdminComment, so that sacct alone shows them. */
#ifndef STEELYARD_SLURM_FINISH_H
#define STEELYARD_SLURM_FINISH_H

#include "config.h"
#include "job/message_queue.h"
#include "step.h"

/* Whether this step's end is the moment: the batch step; in a job that has none, every step, on
 * its first node (each overwrites what the one before has written). */
bool sy_finish_is_due(const struct sy_step *step);

/* Ask this node's sampler, and have its totals written. Waits 2 s at most for the sampler, and half
 * a second for the writing. */
void sy_finish(spank_t spank, const struct sy_config *config, const struct sy_step *step,
	       struct sy_message_queue *queue);

#endif
