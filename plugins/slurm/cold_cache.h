/* --cache=cold on a node: once, before the job's first step there. */
#ifndef STEELYARD_SLURM_COLD_CACHE_H
#define STEELYARD_SLURM_COLD_CACHE_H

#include <stdbool.h>

#include "config.h"
#include "error.h"
#include "job_facts.h"
#include "outbox.h"
#include "step.h"

/* Whether no step of the job has asked for it on this node yet; it is noted that one has. */
bool sy_cold_cache_is_due(const struct sy_config *config, const struct sy_step *step);

/* Drop them, if the policy lets him, and tell the sampler what was done. */
int sy_cold_cache_make(const struct sy_config *config, const struct sy_step *step,
		       const struct sy_job_facts *facts, struct sy_outbox *outbox,
		       struct sy_error *err);

/* At the job's start and end on this node: forget that it was done. */
void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step);

#endif
