#include "counters/process_table.h"

#include "base/file.h"
#include "base/kernel_uapi.h"
#include "counters/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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

/* The clock of a process by its id, computed as clock_getcpuclockid(3) does, but without a check
 * that the process exists: the bits are the kernel's interface (include/linux/posix-timers.h). */
int64_t sy_process_clock_ns(pid_t pid)
{
	clockid_t clock = (clockid_t)((~(unsigned)pid << 3) | 2);
	struct timespec time;

	if (clock_gettime(clock, &time) < 0)
		return -1;
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

ssize_t sy_process_file(struct sy_processes *all, pid_t pid, const char *file, int *fd,
			char *buffer, size_t size)
{
	char path[64];
	ssize_t got;
	int opened;

	if (fd && *fd >= 0)
		return sy_read_counters(*fd, buffer, size);
	(void)snprintf(path, sizeof(path), "%d/%s", pid, file);
	opened = openat(all->proc, path, O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return -errno;
	got = sy_read_counters(opened, buffer, size);
	if (fd && all->fds_after > 0) {
		*fd = opened;
		all->fds_after--;
	} else {
		(void)close(opened);
	}
	return got;
}

static void read_io(struct sy_processes *all, struct sy_process *process, bool first)
{
	char text[512];
	struct sy_usage usage = {{0}};
	ssize_t got = sy_process_file(all, process->pid, "io", &process->io_fd, text, sizeof(text));

	if (got == -ESRCH || got == -ENOENT) {
		process->gone = true;
		return;
	}
	if (got < 0 || sy_parse_io(text, &usage.use[SY_USE_RCHAR]) < 0) {
		all->io_unreadable += !process->io_unreadable;
		process->io_unreadable = true;
		return;
	}
	if (first)
		process->base = usage;
	for (int i = SY_USE_RCHAR; i < SY_USES; i++)
		process->now.use[i] = usage.use[i] - process->base.use[i];
}

/* A child of the PBS daemon before it executes the job's shell: its memory is the daemon's, of
 * pbs_mom 115 MB. `text`: "PID (NAME) …". */
static bool is_copy_of_starter(const struct sy_processes *all, const struct sy_stat *stat,
			       const char *text)
{
	const char *name = strchr(text, '(');
	size_t length = strlen(all->starter.name);

	return all->starter.pid && stat->is_forked && name && length &&
	       strncmp(name + 1, all->starter.name, length) == 0 && name[1 + length] == ')';
}

/* Between vfork(2) and its program a child runs in its parent's memory. */
static bool is_in_memory_of_parent(pid_t pid, const struct sy_stat *stat)
{
	return stat->is_forked && syscall(SYS_kcmp, pid, stat->ppid, KCMP_VM, 0, 0) == 0;
}

/* Of a thread that has memory, once the main thread has none. */
static int64_t thread_rss_pages(struct sy_processes *all, pid_t pid)
{
	char buffer[1024] __attribute__((aligned(8))), file[64], text[1024];
	cleanup_close int tasks = -1;
	struct sy_stat stat;
	long got;

	(void)snprintf(file, sizeof(file), "%d/task", pid);
	tasks = openat(all->proc, file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (tasks >= 0 && (got = syscall(SYS_getdents64, tasks, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);

			at += entry->length;
			(void)snprintf(file, sizeof(file), "task/%.20s/stat", entry->name);
			if (entry->name[0] != '.' &&
			    sy_process_file(all, pid, file, NULL, text, sizeof(text)) > 0 &&
			    sy_parse_stat(text, &stat) == 0 && stat.rss > 0)
				return stat.rss;
		}
	return 0;
}

static int64_t rss_pages(struct sy_processes *all, pid_t pid, const struct sy_stat *stat,
			 const char *text)
{
	if (is_copy_of_starter(all, stat, text) || is_in_memory_of_parent(pid, stat))
		return 0;
	if (stat->state == 'Z' && stat->threads > 1)
		return thread_rss_pages(all, pid);
	return stat->rss;
}

static void read_stat(struct sy_processes *all, struct sy_process *process, bool first)
{
	char text[1024];
	struct sy_stat stat;
	ssize_t got =
	    sy_process_file(all, process->pid, "stat", &process->stat_fd, text, sizeof(text));

	if (got < 0 || sy_parse_stat(text, &stat) < 0) {
		process->gone |= got == -ESRCH || got == -ENOENT;
		return;
	}
	if (!stat.threads) { /* it is being waited for, and its children's times are 0 */
		process->gone = true;
		return;
	}
	process->stat_at = all->sample;
	process->is_zombie = stat.state == 'Z' && stat.threads == 1;
	process->rss_bytes = rss_pages(all, process->pid, &stat, text) * all->page_bytes;
	process->reaped_ns = (stat.cutime + stat.cstime) * all->tick_ns;
	/* A process older than the sampler: what it had used before is not counted. */
	if (first && stat.starttime < all->start_ticks) {
		process->base_ns = process->reaped_ns + (process->root ? 0 : process->clock_ns);
		if (!process->root)
			read_io(all, process, true);
	}
}

static void set_cpu(struct sy_process *process)
{
	int64_t own = process->root ? 0 : process->clock_ns;

	process->now.use[SY_USE_CPU_NS] = own + process->reaped_ns - process->base_ns;
}

void sy_process_read(struct sy_processes *all, struct sy_process *process, struct sy_turn turn)
{
	bool first = process->stat_at < 0, all_of_it = first || process->force;
	int64_t clock = sy_process_clock_ns(process->pid);

	if (clock < 0 || clock < process->clock_ns) {
		process->gone = true;
		return;
	}
	if (process->done || process->final)
		return;
	if (clock != process->clock_ns || all_of_it)
		process->old_stat = process->old_io = true;
	process->clock_ns = clock;
	if (process->old_stat && (turn.stat || all_of_it)) {
		process->old_stat = false;
		read_stat(all, process, first);
	}
	/* A root's I/O holds its own: its children's is known when it reports. */
	if (process->old_io && !process->gone && !process->root && (turn.io || all_of_it)) {
		process->old_io = false;
		read_io(all, process, false);
	}
	process->force = false;
	set_cpu(process);
}

void sy_process_check(struct sy_process *process)
{
	int64_t clock = sy_process_clock_ns(process->pid);

	if (clock < process->clock_ns) {
		process->gone = true;
		return;
	}
	if (process->final)
		return;
	process->old_stat |= clock != process->clock_ns;
	process->old_io |= clock != process->clock_ns;
	process->clock_ns = clock;
	set_cpu(process);
}
