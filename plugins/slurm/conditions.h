/* The conditions a job was asked to run under (network, cold cache): put in place by the first step
 * on a node that asks, held until the job's end there (the extern step's exit), undone then.
 *
 * The one exception to "a job never fails because of us": what was asked for and cannot be had
 * stops the job, since a number measured under other conditions is worse than none. */
#ifndef STEELYARD_SLURM_CONDITIONS_H
#define STEELYARD_SLURM_CONDITIONS_H

#include <slurm/spank.h>

#include "config.h"
#include "job/samplers.h"
#include "slurmctld_query.h"
#include "step_identity.h"

/* Start of a step other than the extern one: apply the conditions of its options. Waits until the
 * kernel has them and they are verified. */
void sy_conditions_start(spank_t spank, const struct sy_config *config, const struct sy_step *step,
			 struct sy_message_queue *queue);

/* In a task's process, still as root: join the job's own traffic, where that is what is shaped. */
void sy_conditions_join(void);

/* In a task's process, as the user, with the job's stderr: when a condition could not be had, say
 * so (the node's first task of the step) and end the task with exit code 4. */
void sy_conditions_enforce(spank_t spank);

/* For AdminComment: the canonical text, NULL when none was requested. */
const char *sy_conditions_netem(void);

/* Which condition this node has refused, and why; NULL: none. */
const char *sy_conditions_refusal(void);

/* The job's end on this node: undo its conditions. */
void sy_conditions_end(const struct sy_config *config, const struct sy_step *step);

/* Undo what dead jobs have left on this node; `by`: "slurmd" or "next job". One look into a folder
 * when there is nothing. */
void sy_conditions_reap(const struct sy_config *config, const char *by);

/* The job's end: what its runs in containers have left that were killed. Waits for its last
 * processes, some seconds, where there is anything. */
void sy_conditions_remove_leftovers(const struct sy_config *config, const struct sy_step *step);

/* At the job's start and end on this node: forget that its cache was made cold (--cache=cold). */
void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step);

#endif
