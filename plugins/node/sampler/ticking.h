/* Samples that a timer in the kernel takes: their lines are made once a second, each with the time
 * of its own reading. What is not the job's is read then, for the last of them. */
#ifndef STEELYARD_SAMPLER_TICKING_H
#define STEELYARD_SAMPLER_TICKING_H

#include "sampler/sampler.h"

/* Have the kernel take the samples from now on, where it can. */
void sy_ticking_start(struct sy_sampler *s);

/* Take those that it has taken; whether it goes on. */
bool sy_ticking_take(struct sy_sampler *s);

/* The same, and it does not. */
void sy_ticking_stop(struct sy_sampler *s);

#endif
