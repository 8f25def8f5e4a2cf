#include "counters/processes.h"

#include "base/clock.h"
#include "base/file.h"
#include "counters/process_alive.h"
#include "counters/process_members.h"
#include "counters/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Of more processes than that only so many running ones are read a sample, in turn, and each at
 * least once in AT_LEAST_US; but for its memory, where a cgroup gives the job's. docs/sampler.md
 * describes the effect on memory_bytes and I/O. */
#define STATS_A_SAMPLE 16
#define IOS_A_SAMPLE   32
#define AT_LEAST_US    1000000
#define KEPT_FILES     1024	/* an open file of /proc holds 5 kB in the kernel */
#define WANTED_US      30000000 /* to walk through /proc costs some ms */

static bool is_proc(int fd)
{
	struct statfs info;

	return fstatfs(fd, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

/* When the sampler was started, not when it has come so far: what the job has begun meanwhile is
 * not older than it. */
static void set_start(struct sy_processes *all, pid_t sampler, long ticks)
{
	struct timespec boot;
	int64_t now, started = sampler > 0 ? sy_start_ticks(sampler) : -1;

	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	now = boot.tv_sec * ticks + boot.tv_nsec / all->tick_ns;
	all->start_ticks = started >= 0 && started < now ? started : now;
	all->now_us = sy_now_us(CLOCK_MONOTONIC);
	all->start_us = all->now_us - (now - all->start_ticks) * (all->tick_ns / 1000);
}

/* `unshare --fork --pid` without --mount-proc: what /proc has under our ids are others' processes.
 */
static bool is_foreign(int proc)
{
	char link[32];

	return sy_link_at(proc, "/self", link, sizeof(link)) > 0 && atoi(link) != getpid();
}

int sy_processes_init(struct sy_processes *all, pid_t self, pid_t parent, int max_fds,
		      struct sy_error *err)
{
	long ticks = sysconf(_SC_CLK_TCK);

	all->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all->proc < 0)
		return sy_fail_errno(err, errno, "cannot open /proc");
	all->loadavg = openat(all->proc, "loadavg", O_RDONLY | O_CLOEXEC);
	all->trust_loadavg = all->loadavg >= 0 && is_proc(all->loadavg);
	all->proc_is_foreign = is_foreign(all->proc);
	if (all->proc_is_foreign) {
		(void)close(all->proc);
		all->proc = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* has none */
		all->trust_loadavg = false;
	}
	all->ours[0] = self;
	all->ours[1] = parent;
	all->last_pid = all->last_pid_before = -1;
	all->fds_after = max_fds < KEPT_FILES ? max_fds : KEPT_FILES;
	all->tick_ns = 1000000000 / ticks;
	all->page_bytes = sysconf(_SC_PAGESIZE);
	set_start(all, parent, ticks);
	return 0;
}

/* Find the root of that id, or make it; NULL when there is no room. */
static struct sy_process *get_root(struct sy_processes *all, pid_t pid)
{
	struct sy_process *known = sy_process_find(all, pid);

	if (known && known->root)
		return known;
	if (known) /* a step's daemon that was found as a process of the job */
		sy_process_make_root(all, known);
	else
		known = sy_process_add(all, pid, true);
	all->open_roots += known != NULL;
	return known;
}

void sy_processes_root(struct sy_processes *all, pid_t pid)
{
	all->named = true;
	all->walk_all = true;
	(void)get_root(all, pid);
}

void sy_processes_cgroup(struct sy_processes *all, const char *path)
{
	all->named = true;
	all->walk_all = true;
	all->cgroup = path;
}

void sy_processes_done(struct sy_processes *all, pid_t pid, const struct sy_usage *final)
{
	struct sy_process *root = sy_process_find(all, pid);

	if (!root || !root->root)
		root = sy_process_find(all, -pid);
	if (!root)
		root = get_root(all, pid);
	all->done_roots++;
	if (!root)
		return;
	root->now = *final;
	all->open_roots -= !root->done;
	root->done = true;
}

/* An ended root may still send its report while messages wait. */
static bool is_finished(const struct sy_processes *all, const struct sy_process *process)
{
	return process->gone &&
	       (!process->root || (process->pid < 0 && process->gone_at < all->messages_read));
}

static void keep_ended_root(struct sy_processes *all, struct sy_process *root)
{
	sy_process_close(all, root);
	root->pid = -root->pid;
	root->gone_at = all->messages_read;
}

static void forget_gone(struct sy_processes *all)
{
	int retained = 0, count = all->count;
	bool renamed = false;

	for (int i = 0; i < count; i++) {
		struct sy_process *process = &all->process[i];

		if (is_finished(all, process)) {
			sy_process_close(all, process);
			if (process->done || process->final)
				sy_usage_add(&all->reported, &process->now);
			continue;
		}
		if (process->gone && process->pid > 0) {
			keep_ended_root(all, process);
			renamed = true;
		}
		if (retained != i)
			all->process[retained] = *process;
		retained++;
	}
	all->count = retained;
	if (retained != count || renamed)
		sy_processes_index(all);
}

/* In how many samples each is read once. */
struct turns {
	int64_t stat, io;
};

static struct turns count_turns(const struct sy_processes *all)
{
	struct turns turns = {(all->count + STATS_A_SAMPLE - 1) / STATS_A_SAMPLE,
			      (all->count + IOS_A_SAMPLE - 1) / IOS_A_SAMPLE};
	int64_t most = all->period_us ? AT_LEAST_US / all->period_us : 0;

	if (turns.io > most)
		turns.io = most;
	if (turns.stat > most && !all->has_group_memory)
		turns.stat = most;
	return turns;
}

static bool is_due(const struct sy_processes *all, const struct sy_process *process, int64_t turns)
{
	return turns < 2 || process->root || (all->sample + process->pid) % turns == 0;
}

void sy_processes_refresh(struct sy_processes *all, bool all_of_them)
{
	struct turns turns;

	all->sample++;
	all->now_us = sy_now_us(CLOCK_MONOTONIC);
	if (!all->roots_only)
		sy_processes_discover(all);
	turns = count_turns(all);
	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		process->force |= all_of_them;
		if (!process->gone)
			sy_process_read(all, process,
					(struct sy_turn){is_due(all, process, turns.stat),
							 is_due(all, process, turns.io)});
	}
	/* A living child is in no earlier reading of its parent's counters. */
	for (int i = 0; i < all->count; i++)
		if (!all->process[i].root && !all->process[i].gone)
			sy_process_check(&all->process[i]);
	forget_gone(all);
}

/* Give back pages that contain no process. */
static void release_pages(struct sy_processes *all)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)&all->process[all->count] + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)&all->process[SY_MAX_PROCESSES] & ~(page - 1);

	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void sy_processes_keep_roots(struct sy_processes *all)
{
	int retained = 0, count = all->count;

	if (all->find_sockets && sy_now_us(CLOCK_MONOTONIC) - all->now_us < WANTED_US)
		return;
	all->find_sockets = false;
	all->roots_only = true;
	for (int i = 0; i < count; i++) {
		if (!all->process[i].root) {
			sy_process_close(all, &all->process[i]);
			continue;
		}
		if (retained != i)
			all->process[retained] = all->process[i];
		retained++;
	}
	if (retained == count)
		return;
	all->count = retained;
	sy_processes_index(all);
	release_pages(all);
}

void sy_processes_keep_all(struct sy_processes *all)
{
	if (all->roots_only)
		all->walk_all = true;
	all->roots_only = false;
}

struct sy_usage sy_processes_reported(const struct sy_processes *all)
{
	struct sy_usage reported = all->reported;

	for (int i = 0; i < all->count; i++)
		if (all->process[i].done || all->process[i].final)
			sy_usage_add(&reported, &all->process[i].now);
	return reported;
}

struct sy_usage sy_processes_total(const struct sy_processes *all)
{
	struct sy_usage total = all->reported;

	for (int i = 0; i < all->count; i++)
		sy_usage_add(&total, &all->process[i].now);
	return total;
}

enum sy_location sy_processes_locate(struct sy_processes *all, const char *controller)
{
	enum sy_location location = SY_NO_PROCESS;

	for (int i = 0; i < all->count; i++) {
		const struct sy_process *process = &all->process[i];

		if (process->root || process->gone || sy_process_has_daemon_name(all, process->pid))
			continue;
		if (sy_process_is_in_cgroup(all, process->pid, controller))
			return SY_IN_GROUP;
		if (sy_process_is_in_cgroup(all, process->pid,
					    NULL)) /* an ended process is in none */
			location = SY_ELSEWHERE;
	}
	return location;
}

int64_t sy_processes_rss_bytes(const struct sy_processes *all)
{
	int64_t sum = 0;

	for (int i = 0; i < all->count; i++)
		sum += all->process[i].root ? 0 : all->process[i].rss_bytes;
	return sum;
}

int sy_processes_alive(const struct sy_processes *all)
{
	int alive = 0;

	for (int i = 0; i < all->count; i++)
		alive += !all->process[i].root && !all->process[i].is_zombie;
	return alive;
}

pid_t sy_processes_find_living(const struct sy_processes *all, bool (*lives)(pid_t))
{
	for (int i = 0; i < all->count; i++)
		if (!all->process[i].root && !all->process[i].gone && lives(all->process[i].pid))
			return all->process[i].pid;
	return 0;
}
