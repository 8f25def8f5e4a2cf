/* Numbers out of text, as the kernel's files have them. */
#ifndef STEELYARD_BASE_NUMBER_H
#define STEELYARD_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What follows the digits, or NULL. strtoll costs three times as much, and there are thousands of
 * these a second. */
static inline const char *sy_number(const char *text, int64_t *value)
{
	int64_t result = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	while (*text >= '0' && *text <= '9') {
		/* Saturated rather than wrapped: "unlimited" of cgroup v1 is near 2^63. */
		if (result > (INT64_MAX - 9) / 10)
			return NULL;
		result = result * 10 + (*text++ - '0');
	}
	*value = result;
	return text;
}

/* A list of numbers ("0-3,8,10-11"), as the kernel and Slurm write CPUs, into `marks` of `size`:
 * how many, or -1 when it is no such list. Numbers from `size` on are counted, not marked. */
int sy_parse_number_list(const char *text, bool *marks, int size);

/* FNV-1a, 64 bits, continued over more bytes; it begins with SY_HASH. */
#define SY_HASH 0xcbf29ce484222325ULL
uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size);

/* The sampling rate: one grammar and one message, for sbatch, steelyard-node and messages.
 * wrappers/commands/run.py has the same. */

#define SY_MIN_RATE_HZ 0.001
#define SY_MAX_RATE_HZ 1000.0 /* what the sampler can keep up with */

/* 0 (totals only), or SY_MIN_RATE_HZ to `max_hz`. */
int sy_rate_parse(const char *text, double max_hz, double *hz, struct sy_error *err);

#endif
