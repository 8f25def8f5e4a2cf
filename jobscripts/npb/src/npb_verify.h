/*
 * Comparing figures with their official values, and memory.
 */
#ifndef NPB_VERIFY_H
#define NPB_VERIFY_H

#include "npb.h"

/* |value - expected| / |expected| <= limit; false for NaN. Writes the comparison down. */
bool npb_check(struct npb_run *run, const char *name, double value, double expected, double limit);

/* The same for complex numbers: distance from the official one over its modulus. */
bool npb_check_complex(struct npb_run *run, const char *name, const double value[2],
		       const double expected[2], double limit);

/* Adds to the residuals of the run, for the report in JSON. */
void npb_residual(struct npb_run *run, double residual);

/* Zeroed memory, aligned to 64 bytes; ends the program with one line and code 2 without it. */
void *npb_alloc(size_t count, size_t bytes);
void npb_free(void *memory);
/* How many were not yet freed. */
long npb_blocks(void);

/* a / b, rounded up. */
NPB_INLINE int64_t npb_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

#endif
