/* No job uses CPU faster than the node has CPUs: a sum that does is a fault of ours, no number. */
#ifndef STEELYARD_COUNTERS_CPU_GUARD_H
#define STEELYARD_COUNTERS_CPU_GUARD_H

#include <stdint.h>

struct sy_cpu_guard {
	int64_t cpus;
	int64_t told_us;  /* the last sum that could be */
	int64_t since_us; /* what has come since may have been used from then on */
	int64_t held_us;  /* how much more was found, and is not told */
};

/* `now_us`: when nothing has been used yet. */
void sy_cpu_guard_init(struct sy_cpu_guard *guard, int64_t now_us);

/* CPU time found between `from_us` and `now_us` (monotonic), of which some may have been used since
 * `since_us`: by children that were never seen, and show when their parent is read. Returns what is
 * to be told: it, or the last that could be. What is held back is told as soon as it can be. */
int64_t sy_cpu_guard_tell(struct sy_cpu_guard *guard, int64_t cpu_us, int64_t since_us,
			  int64_t from_us, int64_t now_us);

#endif
