#include "counters/processes.h"

#include "base/clock.h"
#include "base/file.h"
#include "counters/parse.h"
#include "counters/process_alive.h"
#include "counters/processes_find.h"
#include "counters/processes_handed.h"
#include "counters/processes_read.h"
#include "counters/processes_settle.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

/* Of more processes than that, only so many that have run are read a sample, in turn, io of each
 * once in IO_US at least. docs/sampler.md says what that does to memory_bytes and I/O. */
#define STATS_A_SAMPLE 16
#define IOS_A_SAMPLE   32
#define IO_US	       1000000
#define KEPT_FILES     1024 /* an open file of /proc holds 5 kB in the kernel */
#define GROUP_ASKED    3    /* samples: a daemon enters its group at its start, or never */

static bool is_kernels_own(int fd)
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
	all->since_us = all->start_us;
}

int sy_processes_init(struct sy_processes *all, pid_t self, pid_t parent, int max_fds,
		      struct sy_error *err)
{
	long ticks = sysconf(_SC_CLK_TCK);

	all->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all->proc < 0)
		return sy_fail_errno(err, errno, "cannot open /proc");
	all->loadavg = openat(all->proc, "loadavg", O_RDONLY | O_CLOEXEC);
	all->trust_loadavg = all->loadavg >= 0 && is_kernels_own(all->loadavg);
	all->ours[0] = self;
	all->ours[1] = parent;
	all->last_pid = all->last_pid_before = -1;
	all->fds_left = max_fds < KEPT_FILES ? max_fds : KEPT_FILES;
	all->tick_ns = 1000000000 / ticks;
	all->coarse_clock = sy_process_clock_ns(getpid()) % all->tick_ns == 0;
	all->page_bytes = sysconf(_SC_PAGESIZE);
	set_start(all, parent, ticks);
	return 0;
}

/* The root of that id, made one if need be; NULL when there is no room. */
static struct sy_process *as_root(struct sy_processes *all, pid_t pid)
{
	struct sy_process *known = sy_process_find(all, pid);

	if (known && known->root)
		return known;
	if (known) { /* a step's daemon that was found as a process of the job */
		sy_process_make_root(all, known);
	} else {
		known = sy_process_add(all, pid, 0, true);
	}
	all->open_roots += known != NULL;
	all->new_parents = true;
	return known;
}

void sy_processes_root(struct sy_processes *all, pid_t pid)
{
	all->named = true;
	all->walk_all = true;
	(void)as_root(all, pid);
}

void sy_processes_promise(struct sy_processes *all, pid_t pid)
{
	struct sy_process *root = sy_process_find(all, pid);

	if (root)
		root->promised = true;
}

void sy_processes_cgroup(struct sy_processes *all, const char *path)
{
	all->named = true;
	all->walk_all = true;
	all->cgroup = path;
}

/* Told twice of a step without a batch step: the later one replaces the earlier. */
/* Final counters have to hold what its children were seen to use. CPU time in whole ticks lacks
 * some of it all the same (UML: 60 ms that no parent ever showed). */
static bool is_loss(const struct sy_processes *all, const struct sy_usage *missing)
{
	return (!all->coarse_clock && missing->use[SY_USE_CPU_NS] > 2 * all->tick_ns) ||
	       missing->use[SY_USE_RCHAR] > SY_UNSURE_BYTES ||
	       missing->use[SY_USE_WCHAR] > SY_UNSURE_BYTES;
}

/* Whether those for whom it was gone before it was asked are in what it tells now. */
static void settle_doubts(struct sy_processes *all, struct sy_process *root,
			  const struct sy_usage *missing, int64_t faults)
{
	int64_t left;

	root->reaped_faults = faults < 0 ? INT64_MAX : faults; /* not told: it may hold all */
	left = root->reaped_faults - root->shown_faults;
	if (!sy_gone_are_shown(&root->doubtful, &left) || is_loss(all, missing))
		sy_gone_add(&all->unwaited, &root->doubtful);
	root->shown_faults = root->reaped_faults - left;
	root->doubtful = (struct sy_gone){0};
}

void sy_processes_done(struct sy_processes *all, pid_t pid, const struct sy_usage *final,
		       int64_t faults)
{
	struct sy_process *root = sy_process_find(all, pid);
	struct sy_usage missing;

	if (!root || !root->root)
		root = sy_process_find(all, -pid);
	if (!root)
		root = as_root(all, pid);
	all->done_roots++;
	if (!root)
		return;
	for (int i = 0; i < SY_USES; i++) {
		int64_t known = root->now.use[i] + root->kept.use[i];

		root->now.use[i] = final->use[i] > known ? final->use[i] : known;
		root->kept.use[i] = 0;
		missing.use[i] = known - final->use[i];
	}
	settle_doubts(all, root, &missing, faults);
	root->moved = true;
	sy_processes_used_since(all, root->stat_us);
	all->open_roots -= !root->done;
	root->done = true;
}

static void set_before(struct sy_process *process)
{
	process->before = process->now;
	process->reaped_before_ns = process->reaped_ns;
	process->reaped_faults_before = process->reaped_faults;
	process->moved = false;
}

static void forget_gone(struct sy_processes *all)
{
	int kept = 0, count = all->count;
	bool renamed = false;

	for (int i = 0; i < count; i++) {
		struct sy_process *process = &all->process[i];

		if (process->gone && !process->root)
			continue;
		if (process->done && process->gone && process->gone_at < all->heard) {
			sy_usage_add(&all->kept, &process->now);
			sy_usage_add(&all->kept, &process->kept);
			sy_usage_add(&all->told, &process->now);
			all->daemons.count += process->in_group;
			all->daemons.cpu_us += process->own_ns / 1000;
			continue;
		}
		if (process->gone && process->pid > 0) {
			/* Its final counters may still be told; its id may be given anew. */
			sy_process_close(all, process);
			if (process->threads)
				process->threads->used = false;
			process->threads = NULL;
			process->pid = -process->pid;
			renamed = true;
			process->gone_at = all->heard;
		}
		if (process->moved)
			set_before(process);
		if (kept != i)
			all->process[kept] = *process;
		kept++;
	}
	all->count = kept;
	if (kept != count || renamed)
		sy_processes_index(all);
}

/* In how many samples each is read once. */
struct turns {
	int64_t stat, io;
};

static struct turns turns_of(const struct sy_processes *all)
{
	struct turns turns = {(all->count + STATS_A_SAMPLE - 1) / STATS_A_SAMPLE,
			      (all->count + IOS_A_SAMPLE - 1) / IOS_A_SAMPLE};
	int64_t most = all->period_us ? IO_US / all->period_us : 0;

	if (turns.io > most)
		turns.io = most;
	return turns;
}

static bool is_turn(const struct sy_processes *all, const struct sy_process *process, int64_t turns)
{
	return turns < 2 || process->root || (all->sample + process->pid) % turns == 0;
}

/* A root's counters matter when a child is gone; for children never seen, once in a while. */
static bool is_due(const struct sy_processes *all, const struct sy_process *process)
{
	return !process->root || process->force || all->sample - process->stat_at >= 10;
}

void sy_processes_refresh(struct sy_processes *all, bool all_of_them)
{
	struct turns turns;
	bool unsettled = false;

	all->sample++;
	all->before_us = all->now_us;
	all->now_us = sy_now_us(CLOCK_MONOTONIC);
	if (!all->resting)
		sy_processes_discover(all);
	sy_processes_look_for_parents(all);
	turns = turns_of(all);
	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		process->force |= all_of_them;
		if (process->gone || !is_due(all, process))
			continue;
		sy_process_read(all, process,
				(struct sy_turn){is_turn(all, process, turns.stat),
						 is_turn(all, process, turns.io)});
		process->out_of_turn = process->stands_behind;
		unsettled |= process->gone || process->out_of_turn;
	}
	if (unsettled)
		sy_processes_settle(all);
	forget_gone(all);
}

struct sy_usage sy_processes_total(const struct sy_processes *all)
{
	struct sy_usage total = all->kept;

	for (int i = 0; i < all->count; i++) {
		sy_usage_add(&total, &all->process[i].now);
		if (all->process[i].root)
			sy_usage_add(&total, &all->process[i].kept);
	}
	return total;
}

struct sy_usage sy_processes_told(const struct sy_processes *all)
{
	struct sy_usage told = all->told;

	for (int i = 0; i < all->count; i++)
		if (all->process[i].done)
			sy_usage_add(&told, &all->process[i].now);
	return told;
}

/* The extern step's. */
static void add_keeper(struct sy_processes *all, const char *controller, struct sy_daemons *sum)
{
	int64_t clock = all->keeper ? sy_process_clock_ns(all->keeper) : -1;

	if (clock < 0 || sy_process_find(all, all->keeper))
		clock = all->keeper_ns;
	else if (!all->keeper_in_group)
		all->keeper_in_group = sy_process_is_in_cgroup(all, all->keeper, controller);
	all->keeper_ns = clock;
	sum->count += all->keeper_in_group;
	sum->cpu_us += all->keeper_in_group ? clock / 1000 : 0;
}

/* Not its clock_ns, which tells whether it has run since its counters were read. */
static void read_own_cpu(struct sy_process *root)
{
	int64_t clock = root->pid > 0 ? sy_process_clock_ns(root->pid) : -1;

	if (clock > root->own_ns)
		root->own_ns = clock;
}

/* Their own CPU since they were started, which may be from before the cgroup counted it. */
struct sy_daemons sy_processes_daemons(struct sy_processes *all, const char *controller)
{
	struct sy_daemons sum = all->daemons;

	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		if (!process->root)
			continue;
		if (!process->in_group && !process->gone && process->group_asked++ < GROUP_ASKED)
			process->in_group = sy_process_is_in_cgroup(all, process->pid, controller);
		if (process->in_group)
			read_own_cpu(process);
		sum.count += process->in_group;
		sum.cpu_us += process->own_ns / 1000;
	}
	add_keeper(all, controller, &sum);
	return sum;
}

enum sy_place sy_processes_place(struct sy_processes *all, const char *controller)
{
	enum sy_place place = SY_NOBODY_TO_ASK;

	for (int i = 0; i < all->count; i++) {
		const struct sy_process *process = &all->process[i];

		if (process->root || process->gone || sy_process_is_task_to_be(all, process->pid))
			continue;
		if (sy_process_is_in_cgroup(all, process->pid, controller))
			return SY_IN_GROUP;
		if (sy_process_is_in_cgroup(all, process->pid, NULL)) /* who has ended is in none */
			place = SY_ELSEWHERE;
	}
	return place;
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
		alive += !all->process[i].root;
	return alive;
}

int sy_processes_at_work(const struct sy_processes *all)
{
	int count = 0;

	for (int i = 0; i < all->count; i++) {
		const struct sy_process *process = &all->process[i];

		count += !process->root && !process->gone && !process->final &&
			 sy_process_is_at_work(all, process, all->now_us);
	}
	return count;
}

int sy_processes_silent_roots(const struct sy_processes *all)
{
	int count = 0;

	for (int i = 0; i < all->count; i++) {
		const struct sy_process *root = &all->process[i];

		count += root->promised && root->gone && !root->done;
	}
	return count;
}

pid_t sy_processes_any(const struct sy_processes *all, bool (*lives)(pid_t))
{
	for (int i = 0; i < all->count; i++)
		if (!all->process[i].root && !all->process[i].gone && lives(all->process[i].pid))
			return all->process[i].pid;
	return 0;
}
