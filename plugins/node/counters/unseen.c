#include "counters/unseen.h"

/* The kernel rounds what a process has waited for down to 20 ms; a process that is let go counts a
 * moment before its cgroup does. At its end a step's daemon works unseen for some 20 ms, in a slow
 * guest ten times as long: as long as it has worked before is allowed for. */
#define ROUNDING_US 50000
#define DAEMON_US   50000
#define SHARE	    50 /* one part in so many: 2 % */

void sy_unseen_begin(struct sy_unseen *unseen, int64_t group_us, int64_t processes_us,
		     const struct sy_daemons *daemons)
{
	*unseen = (struct sy_unseen){.known = true,
				     .group_base_us = group_us,
				     .processes_base_us = processes_us + daemons->cpu_us};
}

void sy_unseen_compare(struct sy_unseen *unseen, int64_t group_us, int64_t processes_us,
		       const struct sy_daemons *daemons)
{
	int64_t shown = processes_us + daemons->cpu_us - unseen->processes_base_us;

	unseen->group_us = group_us - unseen->group_base_us;
	unseen->us = unseen->group_us > shown ? unseen->group_us - shown : 0;
	unseen->daemons = daemons->count;
	unseen->tolerated_us =
	    ROUNDING_US + DAEMON_US * daemons->count + daemons->cpu_us + unseen->group_us / SHARE;
}

int64_t sy_unseen_left_us(const struct sy_unseen *unseen, int64_t group_us,
			  const struct sy_daemons *daemons)
{
	return group_us - unseen->group_base_us + unseen->processes_base_us - daemons->cpu_us;
}

bool sy_unseen_matters(const struct sy_unseen *unseen)
{
	return unseen->known && unseen->us > unseen->tolerated_us;
}
