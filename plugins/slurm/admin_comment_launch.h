/* At a job's end its totals go into AdminComment, so that sacct alone shows them. steelyard-slurmdb
 * writes them, a process outside of the job: no job waits for slurmctld. */
#ifndef STEELYARD_SLURM_ADMIN_COMMENT_LAUNCH_H
#define STEELYARD_SLURM_ADMIN_COMMENT_LAUNCH_H

#include "config.h"
#include "job/samplers.h"
#include "step_identity.h"

/* Whether this step's end is the moment: the batch step; in a job that has none, every step, on
 * its first node (each overwrites what the step before has written). */
bool sy_admin_comment_is_due(const struct sy_step *step);

/* Request the totals from this node's sampler and have them written. Waits 2 s at most for the
 * sampler, and half a second for the result of the writing, which is logged; the program tries for
 * a minute. */
void sy_admin_comment_set(spank_t spank, const struct sy_config *config, const struct sy_step *step,
			  struct sy_message_queue *queue);

#endif
