#include "own_usage.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "counters/thread_io.h"

static struct sy_thread_io threads;
static struct {
	long long cpu_us, faults;
} own_children;

/* A child begins as a copy of us: what is not larger than we are may be that copy, before it became
 * the user's program. */
static long long largest_bytes(const struct rusage *children)
{
	struct rusage own;

	if (getrusage(RUSAGE_SELF, &own) != 0 || children->ru_maxrss <= own.ru_maxrss)
		return 0;
	return (long long)children->ru_maxrss * 1024;
}

static bool whole_io(struct sy_io *io, ssize_t *length)
{
	char text[1024];
	cleanup_close int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	*length = fd >= 0 ? sy_read_fd(fd, text, sizeof(text)) : -1;
	return *length > 0 && sy_parse_io(text, io) == 0;
}

#define TRIES 10

/* Between the two readings of the whole, besides what our own readings are. */
static long long moved(const struct sy_io *before, const struct sy_io *after)
{
	return llabs(after->rchar - before->rchar - threads.just_read) +
	       llabs(after->wchar - before->wchar);
}

/* What a thread does between the reading of the whole and its own would be taken off although it is
 * not in the whole: once more, then. Of threads that never rest the quietest moment is taken, and
 * `unsure` is what moved in it. */
static bool children_io(struct sy_io *io, long long *unsure)
{
	cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*unsure = LLONG_MAX;
	for (int i = 0; proc >= 0 && 0 < *unsure && i < TRIES; i++) {
		const struct timespec pause = {.tv_nsec = 500000};
		struct sy_io before, after, found;
		ssize_t length;

		if (i > 0)
			(void)nanosleep(&pause, NULL); /* a scan of /proc lasts some ms */
		if (!whole_io(&before, &length))
			return false;
		found = before;
		threads.just_read = length;
		if (sy_thread_io_take_off(&threads, proc, getpid(), &found) < 0 ||
		    !whole_io(&after, &length))
			return false;
		if (moved(&before, &after) >= *unsure)
			continue;
		*unsure = moved(&before, &after);
		*io = found;
	}
	return proc >= 0;
}

static long long cpu_us(const struct rusage *usage)
{
	return (long long)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
	       usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
}

void sy_own_usage_leave_out(const struct rusage *child)
{
	own_children.cpu_us += cpu_us(child);
	own_children.faults += child->ru_minflt;
}

/* The thread that polls for the accounting does so once more when it is ended, and what it read is
 * not to be told from a child's then. But where no child was waited for since the last call, it is
 * not the children's. */
static void keep_back(struct sy_own_usage *usage)
{
	static struct sy_own_usage last;

	if (usage->faults == last.faults && last.unsure_bytes <= usage->unsure_bytes) {
		memcpy(usage->io, last.io, sizeof(last.io));
		usage->unsure_bytes = last.unsure_bytes;
	}
	last = *usage;
}

bool sy_own_usage_read(struct sy_own_usage *usage)
{
	struct rusage children;
	struct sy_io io = {0};

	if (!children_io(&io, &usage->unsure_bytes) || getrusage(RUSAGE_CHILDREN, &children) != 0)
		return false;
	usage->io[0] = io.rchar;
	usage->io[1] = io.wchar;
	usage->io[2] = io.read;
	usage->io[3] = io.write;
	usage->cpu_us = cpu_us(&children) - own_children.cpu_us;
	usage->waited_faults = children.ru_minflt;
	usage->faults = children.ru_minflt - own_children.faults;
	keep_back(usage);
	usage->largest_bytes = largest_bytes(&children);
	return true;
}
