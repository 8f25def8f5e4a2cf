#include "base/clock.h"

#include <stdbool.h>

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

/* NTP slews by changing the rate of all clocks, not this one's offset. What changes the offset is
 * setting the clock, and leap seconds. */
#define STEP_US	   1000000
#define AT_ONCE_US 100000 /* a delay above this between the two clocks spoils the reading */

/* Time since boot, sleep included; false: the wall clock's offset from it could not be read. */
static bool read_clocks(int64_t *boot_us, int64_t *offset_us)
{
	int64_t before = sy_now_us(CLOCK_BOOTTIME), wall = sy_now_us(CLOCK_REALTIME);

	*boot_us = sy_now_us(CLOCK_BOOTTIME);
	*offset_us = wall - before;
	return *boot_us - before < AT_ONCE_US;
}

void sy_wall_begin(struct sy_wall *wall, int64_t start_unix_s)
{
	*wall = (struct sy_wall){.start_unix_s = start_unix_s};
	for (int tries = 0; tries < 10; tries++)
		if (read_clocks(&wall->start_boot_us, &wall->offset_us))
			break;
	wall->start_unix_us = wall->start_boot_us + wall->offset_us;
}

int64_t sy_wall_us(struct sy_wall *wall)
{
	int64_t boot_us, offset_us, step_us;

	if (read_clocks(&boot_us, &offset_us)) {
		step_us = offset_us - wall->offset_us;
		if (step_us > STEP_US || step_us < -STEP_US) {
			wall->steps++;
			wall->step_us += step_us;
			wall->offset_us = offset_us;
		}
	}
	return wall->start_unix_us + boot_us - wall->start_boot_us;
}

int64_t sy_wall_first_us(struct sy_wall *wall)
{
	int64_t now = sy_wall_us(wall), end = (wall->start_unix_s + 1) * 1000000;

	/* A number of JSON has 15 digits, of which ten are whole seconds: 1 us less would be END.
	 */
	return now >= end && now < end + 1000000 ? end - 1000 : now;
}
