/* Where a sample goes: its line into the sums and the file, the totals to the parent. */
#ifndef STEELYARD_SAMPLER_SAMPLE_OUTPUT_H
#define STEELYARD_SAMPLER_SAMPLE_OUTPUT_H

#include "sampler/child_state.h"

/* Add the line to the sums and the file. `next_us`: when the next one may be. */
void sy_sampler_add_line(struct sy_sampler *s, int64_t now_us, int64_t next_us);

/* Write waiting lines to the file. */
void sy_sampler_write(struct sy_sampler *s, int64_t now_us);

/* Publish the totals to the parent. */
void sy_sampler_publish(struct sy_sampler *s, int64_t now_us);

#endif
