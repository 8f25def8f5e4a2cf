/* Whether two counts of one job's CPU agree: what one has beyond the other. */
#ifndef STEELYARD_COUNTERS_CPU_TOLERANCE_H
#define STEELYARD_COUNTERS_CPU_TOLERANCE_H

#include <stdint.h>

/* The two are read one after the other, some ms apart, on a busy node some ten, while the job's
 * last tasks end; and a step's daemon waits for forks that were in a group of tasks for a moment.
 * Older kernels round what a process has waited for, by 20 ms a process. 2 % beyond that is what
 * rounding may come to over thousands of short processes. */
#define SY_AGREEMENT_US	   100000
#define SY_AGREEMENT_SHARE 50 /* one part in so many: 2 % */

/* So much more one may have than the other, µs. */
static inline int64_t sy_agreement_us(int64_t counted_us)
{
	return SY_AGREEMENT_US + counted_us / SY_AGREEMENT_SHARE;
}

#endif
