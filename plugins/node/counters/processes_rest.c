#include "counters/processes_rest.h"

#include "base/clock.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WANTED_US 30000000 /* to walk through /proc anew costs some ms */

/* Pages that hold nobody any more. */
static void give_back(struct sy_processes *all)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)&all->process[all->count] + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)&all->process[SY_MAX_PROCESSES] & ~(page - 1);

	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void sy_processes_rest(struct sy_processes *all)
{
	int kept = 0, count = all->count;

	if (all->wanted && sy_now_us(CLOCK_MONOTONIC) - all->now_us < WANTED_US)
		return;
	all->wanted = false;
	all->resting = true;
	for (int i = 0; i < count; i++) {
		if (!all->process[i].root) {
			sy_process_close(all, &all->process[i]);
			continue;
		}
		if (kept != i)
			all->process[kept] = all->process[i];
		kept++;
	}
	if (kept == count)
		return;
	all->count = kept;
	sy_processes_index(all);
	give_back(all);
}

void sy_processes_wake(struct sy_processes *all)
{
	if (all->resting)
		all->walk_all = true;
	all->resting = false;
}
