#include "npb.h"

#include <string.h>

enum { LANES = 8 };

uint64_t npb_power(uint64_t a, uint64_t n)
{
	uint64_t power = 1;

	for (; n > 0; n >>= 1) {
		if (n & 1)
			power = npb_step(a, power);
		a = npb_step(a, a);
	}
	return power;
}

uint64_t npb_jump(uint64_t seed, uint64_t n)
{
	return npb_step(npb_power(NPB_MULTIPLIER, n), seed);
}

/*
 * LANES sequences side by side, each taking every LANES-th number: the multiplications of one
 * sequence wait for each other, those of different ones do not.
 */
NPB_VECTOR static void fill_lanes(uint64_t lane[LANES], double *restrict out, size_t rounds)
{
	const uint64_t leap = npb_power(NPB_MULTIPLIER, LANES);
	const double two52 = 0x1p52;
	uint64_t x[LANES], bits;
	double value;

	memcpy(x, lane, sizeof(x));
	for (size_t i = 0; i < rounds; i++) {
		for (int l = 0; l < LANES; l++) {
			/* The bits of 2^52 + x: a conversion that vectors have. */
			bits = x[l] | UINT64_C(0x4330000000000000);
			memcpy(&value, &bits, sizeof(value));
			out[i * LANES + (size_t)l] = (value - two52) * 0x1p-46;
			x[l] = npb_step(leap, x[l]);
		}
	}
	memcpy(lane, x, sizeof(x));
}

void npb_fill_uniform(uint64_t *seed, double *restrict out, size_t count)
{
	uint64_t lane[LANES];
	size_t rounds = count / LANES;

	lane[0] = npb_step(NPB_MULTIPLIER, *seed);
	for (int l = 1; l < LANES; l++)
		lane[l] = npb_step(NPB_MULTIPLIER, lane[l - 1]);
	fill_lanes(lane, out, rounds);
	for (size_t i = rounds * LANES; i < count; i++)
		out[i] = npb_uniform(lane[i - rounds * LANES]);
	*seed = npb_jump(*seed, count);
}
