/* At a job's end: its totals go into AdminComment, so that sacct alone shows them. */
#ifndef STEELYARD_SLURM_FINISH_H
#define STEELYARD_SLURM_FINISH_H

#include "config.h"
#include "outbox.h"
#include "step.h"
#include "totals.h"

/* Whether this step's end is the moment: the batch step; in a job that has none, every step, on
 * its first node (each overwrites what the one before has written). */
bool sy_finish_is_due(const struct sy_step *step);

/* Write what is known before the job runs, its tags and conditions: Slurm takes no comment of a job
 * that was cancelled or has run into its limit, and this one stays. */
void sy_finish_begin(spank_t spank, const struct sy_step *step);

struct sy_finish {
	const struct sy_config *config;
	const struct sy_step *step;
	struct sy_outbox *outbox;
	enum sy_exclusive exclusive; /* of this node */
	double rate_hz;		     /* of the job's samples */
};

/* Ask the sampler, look at the other nodes' samples, write. Waits 50 ms for the sampler and 100 ms
 * for the files at most; then one remote procedure call, 1.3 ms. */
void sy_finish(spank_t spank, const struct sy_finish *finish);

#endif
