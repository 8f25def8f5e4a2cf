/* Time of a clock as a whole number. */
#ifndef STEELYARD_BASE_CLOCK_H
#define STEELYARD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t sy_now_us(clockid_t clock);

#endif
