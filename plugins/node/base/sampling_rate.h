/* The sampling rate: one grammar and one message, for sbatch, steelyard-node and messages.
 * wrappers/commands/run.py has the same. */
#ifndef STEELYARD_BASE_SAMPLING_RATE_H
#define STEELYARD_BASE_SAMPLING_RATE_H

#include "base/error.h"

#define SY_MIN_RATE_HZ 0.001
#define SY_MAX_RATE_HZ 1000.0 /* what the sampler can keep up with */

/* 0 (totals only), or SY_MIN_RATE_HZ to `max_hz`. */
int sy_rate_parse(const char *text, double max_hz, double *hz, struct sy_error *err);

#endif
