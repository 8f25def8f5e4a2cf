#include "counters/rtt_statistics.h"

#include <math.h>

#define STEPS 64U /* buckets an octave */

static unsigned shift_of(uint32_t us)
{
	return us < 2 * STEPS ? 0 : 25U - (unsigned)__builtin_clz(us);
}

static unsigned bucket_of(uint32_t us)
{
	unsigned shift = shift_of(us);

	return STEPS * shift + (us >> shift);
}

/* The middle of a bucket, µs. */
static double middle_of(unsigned bucket)
{
	unsigned shift = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;
	double low = (double)((uint64_t)(bucket - STEPS * shift) << shift);

	return low + ((double)(1U << shift) - 1) / 2;
}

void sy_rtt_add(struct sy_rtt *rtt, struct sy_rtt_counts *counts, uint32_t us)
{
	double before = (double)us - rtt->mean_us;

	if (rtt->readings == 0 || us < rtt->min_us)
		rtt->min_us = us;
	if (us > rtt->max_us)
		rtt->max_us = us;
	rtt->readings++;
	rtt->mean_us += before / (double)rtt->readings;
	rtt->squares += before * ((double)us - rtt->mean_us);
	counts->count[bucket_of(us)]++;
}

double sy_rtt_sd_us(const struct sy_rtt *rtt)
{
	return rtt->readings < 2 ? -1 : sqrt(rtt->squares / (double)(rtt->readings - 1));
}

/* The bucket of the reading of that rank, from 0. */
static unsigned bucket_at(const struct sy_rtt_counts *counts, int64_t rank)
{
	unsigned bucket = 0;

	for (int64_t counted = counts->count[0]; counted <= rank && bucket < SY_RTT_BUCKETS - 1;)
		counted += counts->count[++bucket];
	return bucket;
}

double sy_rtt_median_us(const struct sy_rtt *rtt, const struct sy_rtt_counts *counts)
{
	double median;

	if (rtt->readings == 0)
		return -1;
	median = (middle_of(bucket_at(counts, (rtt->readings - 1) / 2)) +
		  middle_of(bucket_at(counts, rtt->readings / 2))) /
		 2;
	return fmin(fmax(median, rtt->min_us), rtt->max_us);
}
