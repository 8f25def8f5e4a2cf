#include "counters/processes_read.h"

#include "base/file.h"
#include "counters/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Between two readings: who does less than that, and then ends, takes no more than that along. */
#define WORK_NS	   1000000
#define WORK_BYTES 1000
/* At first sight; to begin takes CPU, and bytes that are read. */
#define BEGUN_NS    20000000
#define BEGUN_BYTES 65536
#define BEGUN_SHARE 10 /* one part in so many of its life */

/* The clock of a process by its id, as clock_getcpuclockid(3) makes it without asking whether it
 * is there: the bits are the kernel's interface (include/linux/posix-timers.h). */
int64_t sy_process_clock_ns(pid_t pid)
{
	clockid_t clock = (clockid_t)((~(unsigned)pid << 3) | 2);
	struct timespec time;

	if (clock_gettime(clock, &time) < 0)
		return -1;
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static ssize_t read_once(int fd, char *buffer, size_t size)
{
	ssize_t got = pread(fd, buffer, size - 1, 0);

	if (got < 0)
		return -errno;
	buffer[got] = '\0';
	return got;
}

ssize_t sy_process_file(struct sy_processes *all, pid_t pid, const char *file, int *fd,
			char *buffer, size_t size)
{
	char path[64];
	ssize_t got;
	int opened;

	if (fd && *fd >= 0)
		return read_once(*fd, buffer, size);
	(void)snprintf(path, sizeof(path), "%d/%s", pid, file);
	opened = openat(all->proc, path, O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return -errno;
	got = read_once(opened, buffer, size);
	if (fd && all->fds_left > 0) {
		*fd = opened;
		all->fds_left--;
	} else {
		(void)close(opened);
	}
	return got;
}

static struct sy_usage usage_of(const struct sy_io *io)
{
	return (struct sy_usage){{0, io->rchar, io->wchar, io->read, io->write}};
}

/* A root's own I/O is not the job's. As sy_thread_io_take_off(). */
static int take_off_own(struct sy_processes *all, struct sy_process *root, struct sy_io *io)
{
	for (int i = 0; i < SY_THREADED_ROOTS && !root->threads; i++) {
		if (all->threads[i].used)
			continue;
		root->threads = &all->threads[i];
		*root->threads = (struct sy_thread_io){.used = true};
	}
	return root->threads ? sy_thread_io_take_off(root->threads, all->proc, root->pid, io) : -1;
}

/* What a root has grown by since the last look may be a thread's that has ended: left out. Of
 * children who were waited for meanwhile, what they were seen to use stands in until it is told. */
static void veil(const struct sy_processes *all, struct sy_process *root,
		 const struct sy_usage *usage)
{
	root->veiled_at = all->sample;
	for (int i = SY_USE_RCHAR; i < SY_USES; i++)
		root->base.use[i] = usage->use[i] - root->now.use[i];
}

static bool is_work(const struct sy_process *process, int use, int64_t bytes)
{
	return process->known ? bytes >= WORK_BYTES : use == SY_USE_WCHAR && bytes >= BEGUN_BYTES;
}

static void read_io(struct sy_processes *all, struct sy_process *process, bool first)
{
	char text[512];
	struct sy_io io;
	struct sy_usage usage;
	int own = 0;
	ssize_t got = sy_process_file(all, process->pid, "io", &process->io_fd, text, sizeof(text));

	if (got == -ESRCH || got == -ENOENT) {
		process->gone = true;
		return;
	}
	if (got < 0 || sy_parse_io(text, &io) < 0)
		own = -1;
	else if (process->root)
		own = take_off_own(all, process, &io);
	if (own < 0) {
		all->deaf += !process->deaf;
		process->deaf = true;
		return;
	}
	process->moved = true;
	usage = usage_of(&io);
	if (first)
		process->base = usage;
	else if (own > 0)
		veil(all, process, &usage);
	for (int i = SY_USE_RCHAR; i < SY_USES; i++) {
		int64_t since = usage.use[i] - process->base.use[i];

		if (is_work(process, i, since - process->now.use[i]))
			process->worked_us = all->now_us;
		if (since > process->now.use[i])
			process->now.use[i] = since;
	}
}

/* Its new parent counts for it from here on: a subreaper of ours, or nobody we know. */
static void adopt(struct sy_processes *all, struct sy_process *process, pid_t ppid)
{
	struct sy_process *parent = sy_process_find(all, ppid);

	process->inherits = false;
	process->parent = parent ? ppid : 0;
	if (parent && parent > process)
		parent->stands_behind = true;
}

/* From when on may have been used what is read now: of a new process all, of others what children
 * used that were never seen. */
static void note_age(struct sy_processes *all, const struct sy_process *process,
		     const struct sy_stat *stat, bool first)
{
	int64_t age = (stat->starttime - all->start_ticks) * (all->tick_ns / 1000);

	if (first)
		sy_processes_used_since(all, all->start_us + (age > 0 ? age : 0));
	else if ((stat->cutime + stat->cstime) * all->tick_ns != process->reaped_ns)
		sy_processes_used_since(all, process->stat_us);
}

/* Is one that was never seen before at work, or has it begun and waits? */
static bool has_begun_work(const struct sy_processes *all, const struct sy_process *process,
			   const struct sy_stat *stat)
{
	int64_t born_us =
	    all->start_us + (stat->starttime - all->start_ticks) * (all->tick_ns / 1000);

	return stat->state == 'R' || stat->state == 'D' ||
	       (process->clock_ns >= BEGUN_NS &&
		process->clock_ns / 1000 >= (all->now_us - born_us) / BEGUN_SHARE);
}

/* `text` of stat has the name in brackets. */
static bool is_named(const char *text, const char *name)
{
	const char *begin = strchr(text, '('), *end = strrchr(text, ')');
	size_t length = strlen(name);

	return length && begin && end && (size_t)(end - begin - 1) == length &&
	       !strncmp(begin + 1, name, length);
}

/* One that was found apart may have been seen before it bore our program's name. */
static bool is_of_daemon(const struct sy_processes *all, const struct sy_process *process,
			 const char *text)
{
	return is_named(text, all->keeper_name) ||
	       (all->keeper && !process->parent && is_named(text, "steelyard-node"));
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
	if (!stat.threads) { /* waited for at this moment: its parent and its children's times are 0
			      */
		process->gone = true;
		return;
	}
	note_age(all, process, &stat, first);
	process->stat_at = all->sample;
	process->stat_us = all->now_us;
	process->moved = true;
	process->rss_bytes = stat.rss * all->page_bytes;
	process->reaped_ns = (stat.cutime + stat.cstime) * all->tick_ns;
	if (first && has_begun_work(all, process, &stat))
		process->worked_us = all->now_us;
	if (first) /* children of before were not known */
		process->shown_faults = stat.cminflt;
	process->reaped_faults = stat.cminflt;
	process->faults = stat.minflt + stat.cminflt;
	process->tasks = (int)stat.threads;
	process->of_daemon = is_of_daemon(all, process, text);
	process->ended = stat.state == 'Z' && stat.threads == 1;
	if (process->inherits)
		adopt(all, process, stat.ppid);
	/* A process older than the sampler: what it had used before is not ours to count. */
	if (first && stat.starttime < all->start_ticks) {
		process->base_ns = process->reaped_ns + (process->root ? 0 : process->clock_ns);
		process->reaped_before_ns = process->reaped_ns;
		process->reaped_faults_before = process->reaped_faults;
		read_io(all, process, true);
	}
}

/* It waits for its parent: nothing is to come any more. */
static void read_for_good(struct sy_process *process)
{
	int64_t clock = sy_process_clock_ns(process->pid);

	if (clock > process->clock_ns)
		process->clock_ns = clock;
	process->final = true;
}

static void set_cpu(struct sy_process *process)
{
	int64_t own = process->root ? 0 : process->clock_ns;
	int64_t total = own + process->reaped_ns - process->base_ns;

	if (total > process->now.use[SY_USE_CPU_NS])
		process->now.use[SY_USE_CPU_NS] = total;
}

/* Found gone right after its stat was read: whom it had waited for by then its heir shows with it,
 * and they with their own last counters; so what it tells of them is what it told before. */
static void forget_waited_for(struct sy_process *process, const struct sy_process *before)
{
	process->reaped_ns = before->reaped_ns;
	process->reaped_faults = before->reaped_faults;
	process->faults = before->faults;
}

/* A clock that counts whole ticks may have been given another's. */
static int64_t work_ns(const struct sy_processes *all)
{
	return all->coarse_clock ? 2 * all->tick_ns : WORK_NS;
}

void sy_process_read(struct sy_processes *all, struct sy_process *process, struct sy_turn turn)
{
	bool first = process->stat_at < 0, all_of_it = first || process->force;
	int64_t clock = sy_process_clock_ns(process->pid);
	struct sy_process before = {.reaped_ns = process->reaped_ns,
				    .reaped_faults = process->reaped_faults,
				    .faults = process->faults};

	if (clock < 0 || clock < process->clock_ns) {
		process->gone = true;
		return;
	}
	if (process->done) {
		process->clock_ns = clock; /* of its own use */
		return;
	}
	if (clock != process->clock_ns || all_of_it)
		process->old_stat = process->old_io = process->moved = true;
	if (process->known && clock - process->clock_ns >= work_ns(all))
		process->worked_us = all->now_us;
	process->clock_ns = clock;
	if (process->old_stat && (turn.stat || all_of_it)) {
		process->old_stat = false;
		read_stat(all, process, first);
	}
	if (process->old_io && !process->gone && (turn.io || all_of_it)) {
		process->old_io = false;
		read_io(all, process, false);
		if (process->gone && !process->root)
			forget_waited_for(process, &before);
	}
	if (process->ended && !process->old_io && !process->gone && !process->root)
		read_for_good(process);
	if (process->moved)
		set_cpu(process);
	process->force = false;
	process->known = true;
}

/* From nothing: what it has used itself is in its counters until now. */
void sy_process_make_root(struct sy_processes *all, struct sy_process *process)
{
	sy_process_close(all, process);
	*process = (struct sy_process){.pid = process->pid,
				       .root = true,
				       .stands_behind = process->stands_behind,
				       .stat_fd = -1,
				       .io_fd = -1,
				       .stat_at = -1};
	sy_process_read(all, process, SY_EVERYTHING);
}

struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, pid_t parent, bool root)
{
	struct sy_process *process = sy_processes_append(all, &(struct sy_process){.pid = pid,
										   .parent = parent,
										   .root = root,
										   .stat_fd = -1,
										   .io_fd = -1,
										   .stat_at = -1});

	if (!process)
		return NULL;
	sy_process_read(all, process, SY_EVERYTHING);
	if (process->gone && !root) {
		sy_process_close(all, process);
		sy_processes_drop_last(all);
		return NULL;
	}
	return process;
}
