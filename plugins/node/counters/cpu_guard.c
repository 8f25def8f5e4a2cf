#include "counters/cpu_guard.h"

#include <unistd.h>

/* Times of the waited-for come in ticks of 10 ms, two to each parent. */
#define SLACK_US 50000

void sy_cpu_guard_init(struct sy_cpu_guard *guard, int64_t now_us)
{
	*guard = (struct sy_cpu_guard){.cpus = sysconf(_SC_NPROCESSORS_ONLN), .since_us = now_us};
}

static int64_t most_until(const struct sy_cpu_guard *guard, int64_t now_us)
{
	return guard->told_us + guard->cpus * (now_us - guard->since_us) + SLACK_US;
}

int64_t sy_cpu_guard_tell(struct sy_cpu_guard *guard, int64_t cpu_us, int64_t since_us,
			  int64_t from_us, int64_t now_us)
{
	if (since_us < guard->since_us)
		guard->since_us = since_us;
	if (cpu_us > most_until(guard, now_us)) /* CPUs may have come since the start */
		guard->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpu_us > most_until(guard, now_us)) {
		guard->held_us = cpu_us - guard->told_us;
		return guard->told_us;
	}
	guard->held_us = 0;
	guard->since_us = from_us;
	if (cpu_us > guard->told_us)
		guard->told_us = cpu_us;
	return guard->told_us;
}
