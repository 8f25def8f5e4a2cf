#include "processes.h"

#include "counters.h"
#include "file.h"

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

static const struct sy_turn everything = {true, true};

static bool is_kernels_own(int fd)
{
	struct statfs info;

	return fstatfs(fd, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

int sy_processes_init(struct sy_processes *all, pid_t self, pid_t parent, int max_fds,
		      struct sy_error *err)
{
	long ticks = sysconf(_SC_CLK_TCK);
	struct timespec boot;

	all->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all->proc < 0)
		return sy_fail_errno(err, errno, "cannot open /proc");
	all->loadavg = openat(all->proc, "loadavg", O_RDONLY | O_CLOEXEC);
	all->trust_loadavg = all->loadavg >= 0 && is_kernels_own(all->loadavg);
	all->ours[0] = self;
	all->ours[1] = parent;
	all->last_pid = all->last_pid_before = -1;
	all->fds_left = max_fds;
	all->tick_ns = 1000000000 / ticks;
	all->page_bytes = sysconf(_SC_PAGESIZE);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	all->start_ticks = boot.tv_sec * ticks + boot.tv_nsec / all->tick_ns;
	return 0;
}

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid)
{
	for (int i = 0; i < all->count; i++)
		if (all->process[i].pid == pid)
			return &all->process[i];
	return NULL;
}

struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, pid_t parent, bool root)
{
	struct sy_process *process = &all->process[all->count];

	if (all->count == SY_MAX_PROCESSES) {
		all->overflowed = true;
		return NULL;
	}
	all->count++;
	*process = (struct sy_process){
	    .pid = pid, .parent = parent, .root = root, .stat_fd = -1, .io_fd = -1, .stat_at = -1};
	sy_process_read(all, process, everything);
	if (process->gone && !root) {
		all->count--;
		return NULL;
	}
	return process;
}

void sy_processes_root(struct sy_processes *all, pid_t pid)
{
	struct sy_process *known = sy_process_find(all, pid);

	all->named = true;
	all->walk_all = true;
	if (known && known->root)
		return;
	if (known) { /* a step's daemon that was found as a process of the job */
		known->root = true;
		known->stat_at = -1;
	} else if (!sy_process_add(all, pid, 0, true)) {
		return;
	}
	all->open_roots++;
}

void sy_processes_cgroup(struct sy_processes *all, const char *path)
{
	all->named = true;
	all->walk_all = true;
	all->cgroup = path;
}

static void add(struct sy_usage *sum, const struct sy_usage *more)
{
	for (int i = 0; i < SY_USES; i++)
		sum->use[i] += more->use[i];
}

void sy_processes_done(struct sy_processes *all, pid_t pid, const struct sy_usage *final)
{
	struct sy_process *root = sy_process_find(all, pid);

	if (!root)
		root = sy_process_find(all, -pid);
	all->done_roots++;
	if (!root || !root->root) {
		add(&all->kept, final);
		return;
	}
	for (int i = 0; i < SY_USES; i++) {
		int64_t known = root->now.use[i] + root->kept.use[i];

		root->now.use[i] = final->use[i] > known ? final->use[i] : known;
		root->kept.use[i] = 0;
	}
	root->moved = true;
	all->open_roots -= !root->done;
	root->done = true;
}

static void close_files(struct sy_processes *all, struct sy_process *process)
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

static struct sy_process *living_parent(struct sy_processes *all, const struct sy_process *process)
{
	struct sy_process *parent = sy_process_find(all, process->parent);

	for (int depth = 0; parent && parent->gone && !parent->root && depth < 64; depth++)
		parent = sy_process_find(all, parent->parent);
	return parent && (!parent->gone || parent->root) ? parent : NULL;
}

/* Hand what a process that is gone has used to whoever may have waited for it. */
static void bequeath(struct sy_processes *all, struct sy_process *process)
{
	struct sy_process *parent = living_parent(all, process);

	close_files(all, process);
	for (int i = 0; i < all->count; i++)
		if (all->process[i].parent == process->pid)
			all->process[i].inherits = all->process[i].force = true;
	if (!parent) {
		add(&all->kept, &process->now);
		return;
	}
	add(&parent->lost, &process->now);
	parent->bereaved = parent->force = true;
}

/* What a parent has lost and its counters have not grown by, into `missing`; what they have grown
 * by is used up. CPU of the waited-for is told in whole ticks, twice rounded down. */
static void weigh_loss(const struct sy_processes *all, struct sy_process *parent,
		       struct sy_usage *missing)
{
	for (int i = 0; i < SY_USES; i++) {
		bool is_cpu = i == SY_USE_CPU_NS && !parent->done;
		int64_t *before = is_cpu ? &parent->reaped_before_ns : &parent->before.use[i];
		int64_t gain = (is_cpu ? parent->reaped_ns : parent->now.use[i]) - *before;
		int64_t slack = i == SY_USE_CPU_NS ? 2 * all->tick_ns : 0;
		int64_t lost = parent->lost.use[i];

		missing->use[i] = lost > gain + slack ? lost - gain : 0;
		*before += lost < gain ? lost : gain;
		parent->lost.use[i] = 0;
	}
	parent->bereaved = false;
}

/* Keep beside a parent what its counters do not show of children that are gone. Returns whether it
 * has gone itself since it was read: then its own parent has it all, and must be settled again. */
static bool settle(struct sy_processes *all, struct sy_process *parent)
{
	struct sy_usage missing;
	bool was_gone = parent->gone, goes;

	if (parent->force && !parent->gone)
		sy_process_read(all, parent, everything);
	goes = parent->gone && !was_gone && !parent->root;
	if (!parent->bereaved && !goes)
		return false;
	weigh_loss(all, parent, &missing);
	if (goes) {
		add(&parent->now, &missing);
		bequeath(all, parent);
		return true;
	}
	add(parent->root && !parent->done ? &parent->kept : &all->kept, &missing);
	return false;
}

static void look(struct sy_process *process)
{
	process->seen = process->now;
	process->reaped_seen_ns = process->reaped_ns;
}

/* What has come since look() may be of children that were still there then: it is left to be
 * weighed against them at the next sample. */
static void set_before(struct sy_process *process, bool looked)
{
	if (!looked) {
		process->before = process->now;
		process->reaped_before_ns = process->reaped_ns;
		return;
	}
	for (int i = 0; i < SY_USES; i++)
		if (process->before.use[i] < process->seen.use[i])
			process->before.use[i] = process->seen.use[i];
	if (process->reaped_before_ns < process->reaped_seen_ns)
		process->reaped_before_ns = process->reaped_seen_ns;
}

static void forget_gone(struct sy_processes *all, bool looked)
{
	int kept = 0;

	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		if (process->gone && !process->root)
			continue;
		if (process->done) {
			close_files(all, process);
			add(&all->kept, &process->now);
			continue;
		}
		if (process->gone && process->pid > 0) {
			/* Its final counters may still be told; its id may be given anew. */
			close_files(all, process);
			process->pid = -process->pid;
		}
		if (process->moved) {
			set_before(process, looked);
			process->moved = false;
		}
		if (kept != i)
			all->process[kept] = *process;
		kept++;
	}
	all->count = kept;
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
	bool anyone_gone = false;

	all->sample++;
	sy_processes_discover(all);
	turns = turns_of(all);
	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];

		process->force |= all_of_them;
		if (process->gone || !is_due(all, process))
			continue;
		sy_process_read(all, process,
				(struct sy_turn){is_turn(all, process, turns.stat),
						 is_turn(all, process, turns.io)});
		anyone_gone |= process->gone || process->done;
	}
	for (int i = 0; i < all->count && anyone_gone; i++)
		look(&all->process[i]);
	for (int i = 0; i < all->count && anyone_gone; i++)
		if (all->process[i].gone && !all->process[i].root)
			bequeath(all, &all->process[i]);
	for (bool again = anyone_gone; again;) {
		again = false;
		for (int i = 0; i < all->count; i++)
			again |= settle(all, &all->process[i]);
	}
	forget_gone(all, anyone_gone);
}

struct sy_usage sy_processes_total(const struct sy_processes *all)
{
	struct sy_usage total = all->kept;

	for (int i = 0; i < all->count; i++) {
		add(&total, &all->process[i].now);
		if (all->process[i].root)
			add(&total, &all->process[i].kept);
	}
	return total;
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
