/*
 * The pseudorandom numbers of the report, section 2.3: x(k+1) = a x(k) mod 2^46 with a = 5^13,
 * and r(k) = 2^-46 x(k) in (0, 1). Whole numbers all the way: 64-bit products may overflow, as
 * only their lowest 46 bits count, and r(k) is exact in a double.
 */
#ifndef NPB_RANDOM_H
#define NPB_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "npb.h"

#define NPB_MULTIPLIER UINT64_C(1220703125) /* 5^13 */
#define NPB_MASK       ((UINT64_C(1) << 46) - 1)

/* The next number of the sequence with the multiplier a. */
NPB_INLINE uint64_t npb_step(uint64_t a, uint64_t x)
{
	return a * x & NPB_MASK;
}

/* r = 2^-46 x */
NPB_INLINE double npb_uniform(uint64_t x)
{
	return (double)(int64_t)x * 0x1p-46;
}

/* a^n mod 2^46, by squaring (section 2.3, "jump-ahead"). */
uint64_t npb_power(uint64_t a, uint64_t n);

/* The seed n steps after `seed`. */
uint64_t npb_jump(uint64_t seed, uint64_t n);

/* out[i] = r of the (i+1)-th number after *seed, for count numbers; *seed moves on by count. */
void npb_fill_uniform(uint64_t *seed, double *restrict out, size_t count);

#endif
