#include "base/clock.h"

int64_t sy_now_us(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
