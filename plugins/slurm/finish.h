/* At a job's end: its totals go into AdminComment, so that sacct alone shows them. */
#ifndef STEELYARD_SLURM_FINISH_H
#define STEELYARD_SLURM_FINISH_H

#include "config.h"
#include "job/outbox.h"
#include "step.h"
#include "job/totals.h"

/* Whether this step's end is the moment: the batch step; in a job that has none, every step, on
 * its first node (each overwrites what the one before has written). */
bool sy_finish_is_due(const struct sy_step *step);

/* Write what is known before the job runs, its tags and conditions: Slurm takes no comment of a job
 * that was cancelled or has run into its limit, and this one stays. Does not wait. */
void sy_finish_begin(spank_t spank, const struct sy_config *config, const struct sy_step *step);

struct sy_finish {
	const struct sy_config *config;
	const struct sy_step *step;
	struct sy_outbox *outbox;
	double rate_hz; /* of the job's samples */
};

/* Ask the sampler, look at the other nodes' samples, write. Waits 2 s for the sampler, 2 s for the
 * folder of records and 1.2 s for slurmctld at most; 3 s where that does not tell of the job
 * either.
 */
void sy_finish(spank_t spank, const struct sy_finish *finish);

#endif
