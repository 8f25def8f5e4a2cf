/* Time of a clock as a whole number. */
#ifndef STEELYARD_BASE_CLOCK_H
#define STEELYARD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t sy_now_us(clockid_t clock);

/* Wall clock, or the end of a second that has passed a moment ago: as who named a file by it. */
int64_t sy_now_within_us(int64_t unix_s);

#endif
