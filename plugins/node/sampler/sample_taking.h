/* Samples: taken, written, published to the parent. Above 2 Hz, and while the kernel counts all of
 * the job, a timer in the kernel takes them, and the child wakes up once a second. */
#ifndef STEELYARD_SAMPLER_SAMPLING_H
#define STEELYARD_SAMPLER_SAMPLING_H

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

/* Write waiting lines to the file. */
void sy_sampler_write(struct sy_sampler *s, int64_t now_us);

/* Publish the totals to the parent. */
void sy_sampler_publish(struct sy_sampler *s, int64_t now_us);

#endif
