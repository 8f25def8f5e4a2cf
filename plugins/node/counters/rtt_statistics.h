/* Statistics of round-trip times, and of other whole numbers, in room that does not grow. */
#ifndef STEELYARD_COUNTERS_RTT_STATISTICS_H
#define STEELYARD_COUNTERS_RTT_STATISTICS_H

#include <stdint.h>

/* Buckets of a logarithmic scale with 64 steps an octave: a median is off by half a bucket, 0.8 %
 * at most. Below 128 µs a bucket holds one value. The idea is that of HdrHistogram. */
#define SY_RTT_BUCKETS 1728

struct sy_rtt_counts {
	uint32_t count[SY_RTT_BUCKETS];
};

/* Mean and sum of squared deviations, value by value: B. P. Welford, Technometrics 4 (1962) 419. */
struct sy_rtt {
	int64_t readings;
	double mean_us, squares;
	uint32_t min_us, max_us;
};

void sy_rtt_add(struct sy_rtt *rtt, struct sy_rtt_counts *counts, uint32_t us);

/* Of the sample (n - 1), µs; negative with fewer than two readings. */
double sy_rtt_sd_us(const struct sy_rtt *rtt);

/* The value below which half of them lie, µs; never outside of min and max; negative: no readings.
 */
double sy_rtt_median_us(const struct sy_rtt *rtt, const struct sy_rtt_counts *counts);

#endif
