/* Takes a sample: reads node, job, TCP and meters; its line goes into the sums and the file, the
 * totals to the parent. child.c decides when.
 *
 * Above 2 Hz, while the kernel counts all of the job, a timer in the kernel takes samples between
 * two of the child's wakeups. The child wakes up once a second and makes their lines, each with the
 * time of its own reading. What is not the job's (node, meters, TCP) is read then, for the last of
 * them. */
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

/* Write waiting lines to the file. */
void sy_sampler_write(struct sy_sampler *s, int64_t now_us);

/* Publish the totals to the parent. */
void sy_sampler_publish(struct sy_sampler *s, int64_t now_us);

#endif
