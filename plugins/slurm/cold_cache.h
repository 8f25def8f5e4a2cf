/* --cache=cold on a node: once, before the job's first step there. */
#ifndef STEELYARD_SLURM_COLD_CACHE_H
#define STEELYARD_SLURM_COLD_CACHE_H

#include <stdint.h>
#include "base/error.h"
#include "config.h"
#include "slurmctld_query.h"
#include "job/sampler_messages.h"
#include "step_identity.h"

/* Drop the caches if the policy allows it to the user and no other step of the job has done it on
 * this node, and send the result to the sampler. A refused request is repeated by the next step.
 * `until_ms`: as of struct sy_command_job. */
int sy_cold_cache_make(const struct sy_config *config, const struct sy_step *step,
		       const struct sy_job_facts *facts, int64_t until_ms,
		       struct sy_message_queue *queue, struct sy_error *err);

/* At the job's start and end on this node: forget that it was done. */
void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step);

#endif
