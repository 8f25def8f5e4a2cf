#include "counters/process_list.h"

#include "counters/process_reading.h"

#include <linux/kcmp.h>
#include <string.h>
#include <unistd.h>

/* Knuth's multiplicative hashing. When a slot is in use, the next one is tried. */
static unsigned hash_slot(pid_t pid)
{
	return (uint32_t)pid * 2654435761u >> (32 - SY_INDEX_BITS);
}

static unsigned next_slot(unsigned slot)
{
	return (slot + 1) % (1u << SY_INDEX_BITS);
}

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid)
{
	if (pid == 0)
		return NULL;
	for (unsigned at = hash_slot(pid); all->index[at]; at = next_slot(at))
		if (all->process[all->index[at] - 1].pid == pid)
			return &all->process[all->index[at] - 1];
	return NULL;
}

static unsigned find_free_slot(const struct sy_processes *all, pid_t pid)
{
	unsigned at = hash_slot(pid);

	while (all->index[at])
		at = next_slot(at);
	return at;
}

static struct sy_process *append(struct sy_processes *all, const struct sy_process *process)
{
	if (all->count == SY_MAX_PROCESSES) {
		all->overflowed = true;
		return NULL;
	}
	all->process[all->count++] = *process;
	all->index[find_free_slot(all, process->pid)] = (uint16_t)all->count;
	return &all->process[all->count - 1];
}

/* Nothing was put behind its place since. */
static void drop_last(struct sy_processes *all)
{
	unsigned at = hash_slot(all->process[all->count - 1].pid);

	while (all->index[at] != all->count)
		at = next_slot(at);
	all->index[at] = 0;
	all->count--;
}

void sy_processes_index(struct sy_processes *all)
{
	memset(all->index, 0, sizeof(all->index));
	for (int i = 0; i < all->count; i++)
		all->index[find_free_slot(all, all->process[i].pid)] = (uint16_t)(i + 1);
}

void sy_process_close(struct sy_processes *all, struct sy_process *process)
{
	int *fds[] = {&process->stat_fd, &process->io_fd};

	for (int i = 0; i < 2; i++) {
		if (*fds[i] < 0)
			continue;
		(void)close(*fds[i]);
		*fds[i] = -1;
		all->fds_after++;
	}
}

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more)
{
	for (int i = 0; i < SY_USES; i++)
		sum->use[i] += more->use[i];
}

void sy_process_make_root(struct sy_processes *all, struct sy_process *process)
{
	sy_process_close(all, process);
	*process = (struct sy_process){
	    .pid = process->pid, .root = true, .stat_fd = -1, .io_fd = -1, .stat_at = -1};
	sy_process_read(all, process, SY_EVERYTHING);
}

struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, bool root)
{
	struct sy_process *process =
	    append(all, &(struct sy_process){
			    .pid = pid, .root = root, .stat_fd = -1, .io_fd = -1, .stat_at = -1});

	if (!process)
		return NULL;
	sy_process_read(all, process, SY_EVERYTHING);
	if (process->gone && !root) {
		sy_process_close(all, process);
		drop_last(all);
		return NULL;
	}
	return process;
}
