#include "base/exec.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/kernel_uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define OUTPUT_LIMIT (4 << 20)
#define POLL_NS	     200000L /* how often we look whether a program of a few ms has ended */
#define LOOK_MS	     100     /* and whether it takes too long, where its end wakes us */
#define KILLED_MS    1000    /* how long the kernel may take to end what was killed */
#define OUT_FD	     3	     /* of a function: what it writes */

void sy_cleanup_output(struct sy_output *output)
{
	free(output->out);
	free(output->problem);
}

static _Thread_local int passed_descriptor = -1;

void sy_run_pass_descriptor(int fd)
{
	passed_descriptor = fd;
}

static _Thread_local const char *passed_variable;

void sy_run_pass_variable(const char *variable)
{
	passed_variable = variable;
}

static bool find_program(const char *name, char *path, size_t size)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};

	if (name[0] == '/')
		return snprintf(path, size, "%s", name) < (int)size && access(path, X_OK) == 0;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(path, size, "%s/%s", folders[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Files in memory instead of pipes: nothing can block, and no SIGPIPE reaches our host. */
static int memory_file(const char *text)
{
	int fd = memfd_create("steelyard", MFD_CLOEXEC);

	if (fd >= 0 && text &&
	    (sy_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static char *read_memory_file(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text;

	if (size < 0 || size > OUTPUT_LIMIT)
		return NULL;
	text = malloc((size_t)size + 1);
	if (text && sy_read_fd(fd, text, (size_t)size + 1) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int spawn(const char *path, const char *const *argv, const int fds[3], pid_t *pid)
{
	char *environment[] = {(char *)"LC_ALL=C", (char *)passed_variable, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3; i++)
		(void)posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	if (passed_descriptor >= 0)
		(void)posix_spawn_file_actions_adddup2(&actions, passed_descriptor, 3);
	error = posix_spawn(pid, path, &actions, &attributes, (char *const *)argv, environment);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return error;
}

/* Until something may have happened. `fd` is of pidfd_open(2), or negative before Linux 5.3. */
static void pause_for(int fd)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	struct pollfd end = {fd, POLLIN, 0};

	if (fd < 0)
		(void)nanosleep(&pause, NULL);
	else
		(void)poll(&end, 1, LOOK_MS);
}

/* Wait for the end: 0, or -errno; ETIMEDOUT when it had to be killed, or is left. A process that
 * waits for a dead file system cannot even be killed: the reaper of orphans gets it. */
static int wait_for(pid_t pid, int limit_ms, bool leaves, int *status)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + limit_ms;
	bool late = false;

	for (;;) {
		pid_t ended = waitpid(pid, status, WNOHANG);

		if (ended == pid)
			return late ? -ETIMEDOUT : 0;
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (sy_now_ms(CLOCK_MONOTONIC) >= until_ms) {
			if (late || leaves)
				return -ETIMEDOUT;
			late = true;
			until_ms += KILLED_MS;
			(void)kill(pid, SIGKILL);
		}
		pause_for(fd);
	}
}

static int run_with(int limit_ms, bool leaves, const char *path, const char *const *argv,
		    const int fds[3], struct sy_output *output, struct sy_error *err)
{
	int error, status = 0;
	pid_t pid;

	error = spawn(path, argv, fds, &pid);
	if (error)
		return sy_fail_errno(err, error, "cannot start %s", path);
	error = wait_for(pid, limit_ms, leaves, &status);
	if (error == -ETIMEDOUT)
		return sy_fail(err, "%s did not end within %g s and %s", path, limit_ms / 1000.0,
			       leaves ? "still runs" : "was killed");
	if (error)
		return sy_fail_errno(err, -error, "cannot wait for %s", path);
	output->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	output->out = read_memory_file(fds[1]);
	output->problem = read_memory_file(fds[2]);
	if (!output->out || !output->problem)
		return sy_fail(err, "cannot read what %s wrote", path);
	return 0;
}

static int run_program(int limit_ms, bool leaves, const char *const *argv, const char *input,
		       struct sy_output *output, struct sy_error *err)
{
	cleanup_close int in = -1, out = -1, problem = -1;
	char path[512];

	*output = (struct sy_output){0};
	if (!find_program(argv[0], path, sizeof(path))) {
		output->missing = true;
		return sy_fail(err, "there is no program %s (Debian: iproute2)", argv[0]);
	}
	in = input ? memory_file(input) : open("/dev/null", O_RDONLY | O_CLOEXEC);
	out = memory_file(NULL);
	problem = memory_file(NULL);
	if (in < 0 || out < 0 || problem < 0)
		return sy_fail_errno(err, errno, "cannot make files in memory for %s", argv[0]);
	return run_with(limit_ms, leaves, path, argv, (const int[3]){in, out, problem}, output,
			err);
}

int sy_run_within(int limit_ms, const char *const *argv, const char *input,
		  struct sy_output *output, struct sy_error *err)
{
	return run_program(limit_ms, false, argv, input, output, err);
}

int sy_run_or_leave(int limit_ms, const char *const *argv, struct sy_output *output,
		    struct sy_error *err)
{
	return run_program(limit_ms, true, argv, NULL, output, err);
}

int sy_run(const char *const *argv, const char *input, struct sy_output *output,
	   struct sy_error *err)
{
	return sy_run_within(SY_EXEC_TIMEOUT_MS, argv, input, output, err);
}

char *sy_run_text(const char *const *argv, const char *input, struct sy_error *err)
{
	cleanup_output struct sy_output output = {0};
	char *text;

	if (sy_run(argv, input, &output, err) < 0)
		return NULL;
	if (output.status) {
		(void)sy_fail(err, "%s %s: %.*s", argv[0], argv[1] ? argv[1] : "",
			      (int)strcspn(output.problem, "\n"), output.problem);
		return NULL;
	}
	text = output.out;
	output.out = NULL;
	return text;
}

char *sy_run_function(int limit_ms, int (*function)(const void *context, int out),
		      const void *context, struct sy_error *err)
{
	cleanup_close int out = memory_file(NULL);
	int status = 0, error;
	char *text;
	pid_t pid = out < 0 ? -1 : fork();

	if (pid == 0) {
		sy_keep_descriptors((const int[]){-1, -1, -1, out}, OUT_FD + 1);
		_exit(function(context, OUT_FD) ? 1 : 0);
	}
	error = pid < 0 ? -errno : wait_for(pid, limit_ms, false, &status);
	text = error || status ? NULL : read_memory_file(out);
	if (text)
		return text;
	if (error == -ETIMEDOUT)
		(void)sy_fail(err, "not done within %g s", limit_ms / 1000.0);
	else if (error)
		(void)sy_fail_errno(err, -error, "cannot start a process");
	else if (WIFSIGNALED(status))
		(void)sy_fail(err, "the process died of signal %d", WTERMSIG(status));
	else
		(void)sy_fail(err, "the process has no result");
	return NULL;
}

bool sy_program_beside(const char *program, const char *name, char *path, size_t size)
{
	const char *end = strrchr(program, '/');

	return end &&
	       snprintf(path, size, "%.*s/%s", (int)(end - program), program, name) < (int)size;
}
