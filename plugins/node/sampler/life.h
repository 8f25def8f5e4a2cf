/* How long the sampler goes on: while whoever tells the job's end is there, or any process of the
 * job, and a while longer where he may come back (a daemon that is started anew). */
#ifndef STEELYARD_SAMPLER_LIFE_H
#define STEELYARD_SAMPLER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "counters/processes.h"
#include "sampler/open_roots.h"
#include "sampler/wakeup.h"

struct sy_life {
	struct sy_open_roots open; /* roots that messages have named */
	bool leaving;		   /* who started us has said that he goes */
	bool look;		   /* whether anybody is left */
	int64_t linger_us;	   /* how long to wait for word when nobody is */
	int64_t until_us;	   /* when that ends; 0: we do not wait */
};

/* Look who is left, and watch him: whether to go on. `all`: the processes as of this moment. */
bool sy_life_goes_on(struct sy_life *life, const struct sy_processes *all, struct sy_wakeup *wakeup,
		     int64_t now_us);

/* When to wake up at the latest: `next_us`, 0 for never, or the end of the wait for word. As
 * sy_wakeup_sleep() takes it. */
int64_t sy_life_sleep_us(const struct sy_life *life, int64_t next_us, int64_t now_us);

#endif
