/* What one process has used: /proc/PID/io, /proc/PID/stat, its CPU clock. */
#include "processes.h"

#include "counters.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* A root's own I/O is not the job's: that of its main thread is taken off. Its other threads' is
 * left in, which for slurmstepd is what it passes on of the tasks' output. */
static int take_off_own(struct sy_processes *all, pid_t pid, struct sy_io *io)
{
	char file[64], text[512];
	struct sy_io own;

	(void)snprintf(file, sizeof(file), "task/%d/io", pid);
	if (sy_process_file(all, pid, file, NULL, text, sizeof(text)) < 0 ||
	    sy_parse_io(text, &own) < 0)
		return -1;
	io->rchar -= own.rchar;
	io->wchar -= own.wchar;
	io->read -= own.read;
	io->write -= own.write;
	return 0;
}

static void read_io(struct sy_processes *all, struct sy_process *process, bool first)
{
	char text[512];
	struct sy_io io;
	struct sy_usage usage;
	ssize_t got = sy_process_file(all, process->pid, "io", &process->io_fd, text, sizeof(text));

	if (got == -ESRCH || got == -ENOENT) {
		process->gone = true;
		return;
	}
	if (got < 0 || sy_parse_io(text, &io) < 0 ||
	    (process->root && take_off_own(all, process->pid, &io) < 0)) {
		all->deaf += !process->deaf;
		process->deaf = true;
		return;
	}
	process->moved = true;
	usage = usage_of(&io);
	if (first)
		process->base = usage;
	for (int i = SY_USE_RCHAR; i < SY_USES; i++) {
		int64_t since = usage.use[i] - process->base.use[i];

		if (since > process->now.use[i])
			process->now.use[i] = since;
	}
}

/* Its new parent counts for it from here on: a subreaper of ours, or nobody we know. */
static void adopt(struct sy_processes *all, struct sy_process *process, pid_t ppid)
{
	process->inherits = false;
	process->parent = sy_process_find(all, ppid) ? ppid : 0;
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
	process->stat_at = all->sample;
	process->moved = true;
	process->rss_bytes = stat.rss * all->page_bytes;
	process->reaped_ns = (stat.cutime + stat.cstime) * all->tick_ns;
	if (process->inherits)
		adopt(all, process, stat.ppid);
	/* A process older than the sampler: what it had used before is not ours to count. */
	if (first && stat.starttime < all->start_ticks) {
		process->base_ns = process->reaped_ns + (process->root ? 0 : process->clock_ns);
		process->reaped_before_ns = process->reaped_ns;
		read_io(all, process, true);
	}
}

static void set_cpu(struct sy_process *process)
{
	int64_t own = process->root ? 0 : process->clock_ns;
	int64_t total = own + process->reaped_ns - process->base_ns;

	if (total > process->now.use[SY_USE_CPU_NS])
		process->now.use[SY_USE_CPU_NS] = total;
}

void sy_process_read(struct sy_processes *all, struct sy_process *process, struct sy_turn turn)
{
	bool first = process->stat_at < 0, all_of_it = first || process->force;
	int64_t clock = sy_process_clock_ns(process->pid);

	if (process->done)
		return;
	if (clock < 0 || clock < process->clock_ns) {
		process->gone = true;
		return;
	}
	if (clock != process->clock_ns || all_of_it)
		process->old_stat = process->old_io = process->moved = true;
	process->clock_ns = clock;
	if (process->old_stat && (turn.stat || all_of_it)) {
		process->old_stat = false;
		read_stat(all, process, first);
	}
	if (process->old_io && !process->gone && (turn.io || all_of_it)) {
		process->old_io = false;
		read_io(all, process, false);
	}
	if (process->moved)
		set_cpu(process);
	process->force = false;
}
