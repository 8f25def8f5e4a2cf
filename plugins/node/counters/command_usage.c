#include "counters/command_usage.h"

#include "base/clock.h"
#include "base/file.h"
#include "counters/parse.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES	 50
#define PAUSE_NS 1000000 /* a scan of /proc by slurmstepd lasts some ms */

/* What a child that was waited for has used. */
static void add_usage(struct sy_exact *exact, const struct rusage *usage)
{
	int64_t user = (int64_t)usage->ru_utime.tv_sec * 1000000 + usage->ru_utime.tv_usec;
	int64_t system = (int64_t)usage->ru_stime.tv_sec * 1000000 + usage->ru_stime.tv_usec;
	int64_t memory = (int64_t)usage->ru_maxrss * 1024;

	exact->user_us += user;
	exact->system_us += system;
	exact->cpu_us += user + system;
	exact->minor_faults += usage->ru_minflt;
	exact->major_faults += usage->ru_majflt;
	if (memory > exact->max_memory_bytes)
		exact->max_memory_bytes = memory;
}

pid_t sy_reap(pid_t command, int flags, struct sy_exact *exact)
{
	struct rusage usage;
	int status;
	pid_t pid = wait4(-1, &status, flags, &usage);

	if (pid <= 0)
		return pid;
	if (pid == command) {
		exact->elapsed_us = sy_now_us(CLOCK_MONOTONIC) - exact->begin_us;
		exact->known = true;
		exact->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		exact->signal = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
	}
	add_usage(exact, &usage);
	return pid;
}

/* `read_bytes` grows by what this thread has read for it. */
static int read_io_file(int folder, const char *path, int64_t io[4], int64_t *read_bytes)
{
	char text[512];
	cleanup_close int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = sy_read_counters(fd, text, sizeof(text));

	if (length < 0)
		return -1;
	*read_bytes += length;
	return sy_parse_io(text, io);
}

/* Whether `id` in /proc/self/task is this thread: in a PID namespace other than that of /proc,
 * gettid(2) is another number. */
static bool is_this_thread(const char *id)
{
	char link[64];
	ssize_t length = readlink("/proc/thread-self", link, sizeof(link) - 1);
	const char *name;

	if (length <= 0)
		return false;
	link[length] = '\0';
	name = strrchr(link, '/');
	return name && strcmp(name + 1, id) == 0;
}

/* What this thread has read since the whole process was read is not in the whole. */
static int subtract_thread(int tasks, const char *id, int64_t io[4], int64_t *read_bytes)
{
	const int64_t since = is_this_thread(id) ? *read_bytes : 0;
	int64_t thread[4];
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/io", id);
	if (read_io_file(tasks, path, thread, read_bytes) < 0)
		return -1;
	for (int i = 0; i < 4; i++)
		io[i] -= thread[i];
	io[0] += since;
	return 0;
}

/* The counters of the process less those of its threads. Fails where a thread has read, written or
 * ended meanwhile. */
static int read_reaped_io(DIR *tasks, int64_t io[4])
{
	int64_t before[4], after[4], read_bytes = 0, until_after;
	const struct dirent *entry;

	rewinddir(tasks);
	if (read_io_file(AT_FDCWD, "/proc/self/io", before, &read_bytes) < 0)
		return -1;
	memcpy(io, before, sizeof(before));
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.' &&
		    subtract_thread(dirfd(tasks), entry->d_name, io, &read_bytes) < 0)
			return -1;
	until_after = read_bytes;
	if (read_io_file(AT_FDCWD, "/proc/self/io", after, &read_bytes) < 0 ||
	    after[0] - before[0] != until_after || after[1] != before[1])
		return -1;
	return io[0] < 0 || io[1] < 0 || io[2] < 0 || io[3] < 0 ? -1 : 0;
}

int sy_reaped_io(int64_t io[4])
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	cleanup_dir DIR *tasks = opendir("/proc/self/task");
	int result = -1;

	for (int i = 0; tasks && result < 0 && i < TRIES; i++) {
		if (i > 0)
			(void)nanosleep(&pause, NULL);
		result = read_reaped_io(tasks, io);
	}
	return result;
}

void sy_read_command_io(struct sy_exact *exact)
{
	int64_t now[4];

	exact->io_known = exact->io_known && sy_reaped_io(now) == 0;
	for (int i = 0; i < 4 && exact->io_known; i++)
		exact->io[i] = now[i] - exact->io[i];
}

int sy_exit_code(const struct sy_exact *exact)
{
	if (exact->signal > 0)
		return 128 + exact->signal;
	return exact->exit_code < 0 ? 126 : exact->exit_code;
}
