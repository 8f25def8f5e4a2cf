#include "counters/processes_list.h"

#include <unistd.h>

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid)
{
	for (int i = 0; i < all->count; i++)
		if (all->process[i].pid == pid)
			return &all->process[i];
	return NULL;
}

void sy_processes_used_since(struct sy_processes *all, int64_t us)
{
	if (us < all->since_us)
		all->since_us = us;
}

void sy_processes_ask_for_parents(struct sy_processes *all)
{
	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		if (!process->root && process->parent == 0)
			process->inherits = process->force = true;
	}
}

void sy_process_close(struct sy_processes *all, struct sy_process *process)
{
	int *fds[] = {&process->stat_fd, &process->io_fd};

	for (int i = 0; i < 2; i++) {
		if (*fds[i] < 0)
			continue;
		(void)close(*fds[i]);
		*fds[i] = -1;
		all->fds_left++;
	}
}

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more)
{
	for (int i = 0; i < SY_USES; i++)
		sum->use[i] += more->use[i];
}
