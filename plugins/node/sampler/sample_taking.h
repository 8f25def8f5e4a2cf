/* Takes a sample: reads node, job, TCP and meters (sample_output.h has where it goes). child.c
 * decides when; above 2 Hz a timer in the kernel may take samples between two of its wakeups
 * (kernel_timer_samples.h). */
#ifndef STEELYARD_SAMPLER_SAMPLE_TAKING_H
#define STEELYARD_SAMPLER_SAMPLE_TAKING_H

#include "sampler/child_state.h"

/* One of this moment. */
void sy_sampler_sample(struct sy_sampler *s, enum sy_reading reading);

/* The one that is due, or those that the kernel has taken since. */
void sy_sampler_due(struct sy_sampler *s, int64_t now_us);

/* When the next reading is due: a sample, or the job's memory between two that are far apart; 0:
 * none is. */
int64_t sy_sampler_next_us(const struct sy_sampler *s);

/* Read that memory. */
void sy_sampler_memory(struct sy_sampler *s, int64_t now_us);

/* From now on; 0: totals alone. */
void sy_sampler_rate(struct sy_sampler *s, double rate_hz);

#endif
