#include "counters/child_processes.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "counters/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
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
static int try_reaped_io(DIR *tasks, int64_t io[4])
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

/* I/O of this process' children that have been waited for, and of threads that have ended: rchar,
 * wchar, read, write. -1 where a thread was reading or writing at each attempt, for some 50 ms. */
static int read_reaped_io(int64_t io[4])
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	cleanup_dir DIR *tasks = opendir("/proc/self/task");
	int result = -1;

	for (int i = 0; tasks && result < 0 && i < TRIES; i++) {
		if (i > 0)
			(void)nanosleep(&pause, NULL);
		result = try_reaped_io(tasks, io);
	}
	return result;
}

void sy_read_command_io(struct sy_exact *exact)
{
	int64_t now[4];

	exact->io_known = exact->io_known && read_reaped_io(now) == 0;
	for (int i = 0; i < 4 && exact->io_known; i++)
		exact->io[i] = now[i] - exact->io[i];
}

int sy_exit_code(const struct sy_exact *exact)
{
	if (exact->signal > 0)
		return 128 + exact->signal;
	return exact->exit_code < 0 ? 126 : exact->exit_code;
}

/* A child begins as a copy of us: what is not larger than we are may be that copy, before it became
 * the user's program. */
static long long largest_bytes(const struct rusage *children)
{
	struct rusage own;

	if (getrusage(RUSAGE_SELF, &own) != 0 || children->ru_maxrss <= own.ru_maxrss)
		return 0;
	return (long long)children->ru_maxrss * 1024;
}

bool sy_own_usage_read(struct sy_own_usage *usage)
{
	struct rusage children;

	if (getrusage(RUSAGE_CHILDREN, &children) != 0)
		return false;
	usage->cpu_us = (long long)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000 +
			children.ru_utime.tv_usec + children.ru_stime.tv_usec;
	usage->largest_bytes = largest_bytes(&children);
	usage->io_known = read_reaped_io(usage->io) == 0;
	return true;
}

static const int watched_signals[] = {SIGCHLD, SIGINT,	SIGTERM, SIGHUP, SIGQUIT,
				      SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

static void (*before_pipe)(int) = SIG_DFL;
static void (*before_size)(int) = SIG_DFL;
static void (*before_child)(int) = SIG_DFL;

void sy_default_sigchld(void)
{
	before_child = signal(SIGCHLD, SIG_DFL);
}

static sigset_t block_watched_signals(void)
{
	sigset_t all;

	(void)sigemptyset(&all);
	for (size_t i = 0; i < sizeof(watched_signals) / sizeof(watched_signals[0]); i++)
		(void)sigaddset(&all, watched_signals[i]);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	return all;
}

int sy_open_signals(void)
{
	sigset_t all;
	int fd;

	before_pipe = signal(SIGPIPE, SIG_IGN);
	before_size = signal(SIGXFSZ, SIG_IGN);
	all = block_watched_signals();
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		(void)fprintf(stderr, "%s: not measured: signalfd: %s\n",
			      program_invocation_short_name, strerror(errno));
	return fd;
}

static void become_command(char **argv)
{
	sigset_t none;
	int error;

	(void)signal(SIGPIPE, before_pipe);
	(void)signal(SIGXFSZ, before_size);
	(void)signal(SIGCHLD, before_child);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)fprintf(stderr, "%s: cannot run %s: %s\n", program_invocation_short_name, argv[0],
		      strerror(error));
	_exit(error == ENOENT ? 127 : 126);
}

__attribute__((noreturn)) static void stand_in_for(pid_t child, const sigset_t *signals)
{
	siginfo_t info;
	int status;

	sy_silence_streams(1);
	while (waitpid(child, &status, WNOHANG) != child)
		/* What the kernel sends, a terminal has sent to the child as well. */
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code != SI_KERNEL)
			(void)kill(child, info.si_signo);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void sy_leave_earlier_children(void)
{
	sigset_t before, signals;
	siginfo_t info;
	pid_t child;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return;
	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	signals = block_watched_signals();
	child = fork();
	if (child > 0)
		stand_in_for(child, &signals);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

pid_t sy_start_command(char **argv, struct sy_exact *exact)
{
	pid_t pid;

	exact->io_known = read_reaped_io(exact->io) == 0;
	exact->begin_us = sy_now_us(CLOCK_MONOTONIC);
	pid = vfork(); /* its cost does not grow with our memory, and no page is copied meanwhile */
	if (pid == 0)
		become_command(argv);
	if (pid < 0)
		(void)fprintf(stderr, "%s: cannot start %s: %s\n", program_invocation_short_name,
			      argv[0], strerror(errno));
	sy_silence_streams(1);
	return pid;
}

int sy_run_unmeasured(char **argv)
{
	struct sy_exact exact = {.exit_code = -1, .signal = -1};
	pid_t pid = sy_start_command(argv, &exact);

	while (pid > 0 && sy_reap(pid, 0, &exact) > 0 && exact.exit_code < 0 && exact.signal < 0)
		;
	return sy_exit_code(&exact);
}
