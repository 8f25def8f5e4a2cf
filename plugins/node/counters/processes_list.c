#include "counters/processes_list.h"

#include <string.h>
#include <unistd.h>

/* Knuth's multiplicative hashing; neighbours of a full place come next. */
static unsigned place_of(pid_t pid)
{
	return (uint32_t)pid * 2654435761u >> (32 - SY_INDEX_BITS);
}

static unsigned next_place(unsigned place)
{
	return (place + 1) % (1u << SY_INDEX_BITS);
}

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid)
{
	if (pid == 0)
		return NULL;
	for (unsigned at = place_of(pid); all->index[at]; at = next_place(at))
		if (all->process[all->index[at] - 1].pid == pid)
			return &all->process[all->index[at] - 1];
	return NULL;
}

static unsigned free_place(const struct sy_processes *all, pid_t pid)
{
	unsigned at = place_of(pid);

	while (all->index[at])
		at = next_place(at);
	return at;
}

struct sy_process *sy_processes_append(struct sy_processes *all, const struct sy_process *process)
{
	if (all->count == SY_MAX_PROCESSES) {
		all->overflowed = true;
		return NULL;
	}
	all->process[all->count++] = *process;
	all->index[free_place(all, process->pid)] = (uint16_t)all->count;
	return &all->process[all->count - 1];
}

/* Nothing was put behind its place since. */
void sy_processes_drop_last(struct sy_processes *all)
{
	unsigned at = place_of(all->process[all->count - 1].pid);

	while (all->index[at] != all->count)
		at = next_place(at);
	all->index[at] = 0;
	all->count--;
}

void sy_processes_index(struct sy_processes *all)
{
	memset(all->index, 0, sizeof(all->index));
	for (int i = 0; i < all->count; i++)
		all->index[free_place(all, all->process[i].pid)] = (uint16_t)(i + 1);
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
