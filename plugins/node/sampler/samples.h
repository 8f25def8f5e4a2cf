/* Samples: taken, written, shown to the parent. */
#ifndef STEELYARD_SAMPLER_SAMPLES_H
#define STEELYARD_SAMPLER_SAMPLES_H

#include "sampler/child_state.h"

/* One of this moment. */
void sy_sampler_sample(struct sy_sampler *s, enum sy_look look);

/* The one that is due, or those that the kernel has taken. */
void sy_sampler_due(struct sy_sampler *s, int64_t now_us);

/* When the next reading is due: a sample, or the job's memory between two that are far apart; 0:
 * none is. */
int64_t sy_sampler_next_us(const struct sy_sampler *s);

/* That memory. */
void sy_sampler_memory(struct sy_sampler *s, int64_t now_us);

/* So many from now on; 0: none. */
void sy_sampler_rate(struct sy_sampler *s, double rate_hz);

/* The line is a sample: it is added to the sums and the file. `next_us`: when the next one may be.
 */
void sy_sampler_line(struct sy_sampler *s, int64_t now_us, int64_t next_us);

/* Round-trip times, into the line. */
void sy_sampler_tcp(struct sy_sampler *s, int64_t now_us, bool now);

/* What waits goes into the file. */
void sy_sampler_write(struct sy_sampler *s, int64_t now_us);

/* Show the parent what is known now. */
void sy_sampler_publish(struct sy_sampler *s, int64_t now_us);

#endif
