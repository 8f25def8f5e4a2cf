#include "base/clock.h"

int64_t sy_now_us(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t sy_now_within_us(int64_t unix_s)
{
	int64_t now = sy_now_us(CLOCK_REALTIME), end = (unix_s + 1) * 1000000;

	return now >= end && now < end + 1000000 ? end - 1 : now;
}
