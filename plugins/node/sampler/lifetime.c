#include "sampler/lifetime.h"

#include "counters/process_alive.h"

static void remove_ended_roots(struct sy_lifetime *life)
{
	int count = 0;

	for (int i = 0; i < life->roots; i++)
		if (sy_process_lives(life->root[i]))
			life->root[count++] = life->root[i];
	life->roots = count;
}

void sy_lifetime_add_root(struct sy_lifetime *life, pid_t pid)
{
	if (life->roots == SY_MAX_WATCHED_ROOTS)
		remove_ended_roots(life);
	for (int i = 0; i < life->roots; i++)
		if (life->root[i] == pid)
			return;
	if (life->roots < SY_MAX_WATCHED_ROOTS)
		life->root[life->roots++] = pid;
}

static pid_t find_survivor(struct sy_lifetime *life, const struct sy_processes *all)
{
	remove_ended_roots(life);
	/* Where no step has a daemon of its own (PBS) the job is the children of the node's. */
	if (life->roots || life->leaving || !all->starter.pid)
		return life->roots ? life->root[0] : 0;
	return sy_processes_find_living(all, sy_process_lives);
}

bool sy_lifetime_continues(struct sy_lifetime *life, const struct sy_processes *all,
			   struct sy_wakeup *wakeup, int64_t now_us)
{
	pid_t survivor = find_survivor(life, all);

	life->check_survivors = false;
	if (survivor) {
		life->until_us = 0;
		sy_wakeup_watch(wakeup, survivor);
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

int64_t sy_lifetime_sleep_us(const struct sy_lifetime *life, int64_t next_us, int64_t now_us)
{
	if (life->until_us && (!next_us || life->until_us < next_us))
		next_us = life->until_us;
	if (!next_us)
		return -1;
	return next_us > now_us ? next_us - now_us : 0;
}
