#include "sampler/life.h"

static pid_t who_lives(struct sy_life *life, const struct sy_processes *all)
{
	pid_t next = sy_open_roots_living(&life->open);

	/* Without a root the daemon's children are what the job is. */
	if (next || life->leaving || !all->starter.pid)
		return next;
	return sy_processes_any(all, sy_lives);
}

bool sy_life_goes_on(struct sy_life *life, const struct sy_processes *all, struct sy_wakeup *wakeup,
		     int64_t now_us)
{
	pid_t next = who_lives(life, all);

	life->look = false;
	if (next) {
		life->until_us = 0;
		sy_wakeup_watch(wakeup, next);
		return true;
	}
	if (life->leaving || !life->linger_us)
		return false;
	if (!life->until_us) {
		life->until_us = now_us + life->linger_us;
		sy_wakeup_watch(wakeup, 0);
	}
	return now_us < life->until_us;
}

int64_t sy_life_sleep_us(const struct sy_life *life, int64_t next_us, int64_t now_us)
{
	if (life->until_us && (!next_us || life->until_us < next_us))
		next_us = life->until_us;
	if (!next_us)
		return -1;
	return next_us > now_us ? next_us - now_us : 0;
}
