/* How long a job's sampler runs: while the process that is to send `end` lives (--watch), then
 * while any step's daemon or process of the job does, then `linger_us` more, in which a restarted
 * daemon may come back. */
#ifndef STEELYARD_SAMPLER_LIFETIME_H
#define STEELYARD_SAMPLER_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/processes.h"
#include "sampler/wakeup.h"

#define SY_MAX_WATCHED_ROOTS 64 /* of more, those announced first are watched */

struct sy_lifetime {
	pid_t root[SY_MAX_WATCHED_ROOTS]; /* that messages have named */
	int roots;
	bool leaving; /* `leave`: the watched process ends, and a root sends the job's end */
	bool check_survivors; /* look for survivors at the next wakeup */
	int64_t linger_us;    /* how long to wait when nobody is left */
	int64_t until_us;     /* when that wait ends; 0: it has not begun */
};

/* A root that has reported its final counters may still request totals, or send `end`. */
void sy_lifetime_add_root(struct sy_lifetime *life, pid_t pid);

/* Watch the next survivor; false: the sampler ends. `all`: the processes as of this moment. */
bool sy_lifetime_continues(struct sy_lifetime *life, const struct sy_processes *all,
			   struct sy_wakeup *wakeup, int64_t now_us);

/* Microseconds until `next_us` (0: none) or the end of the wait, as sy_wakeup_sleep() takes it. */
int64_t sy_lifetime_sleep_us(const struct sy_lifetime *life, int64_t next_us, int64_t now_us);

#endif
