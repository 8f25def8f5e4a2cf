#include "base/clock.h"

int64_t sy_now_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t sy_now_us(clockid_t clock)
{
	return sy_now_ns(clock) / 1000;
}

int64_t sy_now_ms(clockid_t clock)
{
	return sy_now_ns(clock) / 1000000;
}

double sy_now_s(clockid_t clock)
{
	return (double)sy_now_us(clock) / 1e6;
}
