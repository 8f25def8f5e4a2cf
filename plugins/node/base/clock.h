/* Time: of any clock as a number, and of samples, which only grows. */
#ifndef STEELYARD_BASE_CLOCK_H
#define STEELYARD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t sy_now_ns(clockid_t clock);
int64_t sy_now_us(clockid_t clock);
int64_t sy_now_ms(clockid_t clock);
double sy_now_s(clockid_t clock); /* exact to the microsecond */

/* The time of samples: the wall clock at the sampler's start plus what has passed since, so it only
 * grows; and by how much the wall clock was set meanwhile. */
struct sy_wall {
	int64_t start_unix_s; /* in the names of the sampler's files */
	int64_t start_unix_us, start_boot_us;
	int64_t offset_us; /* of the wall clock from the time since boot */
	int64_t steps, step_us;
};

void sy_wall_begin(struct sy_wall *wall, int64_t start_unix_s);

/* The first sample's time: the end of the second in the names, where that has just passed. */
int64_t sy_wall_first_us(struct sy_wall *wall);

/* The time of this moment; a clock that was set since the last one is counted. */
int64_t sy_wall_us(struct sy_wall *wall);

#endif
