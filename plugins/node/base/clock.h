/* Time of a clock as a number. */
#ifndef STEELYARD_BASE_CLOCK_H
#define STEELYARD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t sy_now_ns(clockid_t clock);
int64_t sy_now_us(clockid_t clock);
int64_t sy_now_ms(clockid_t clock);
double sy_now_s(clockid_t clock); /* exact to the microsecond */

#endif
