#include "job/spawn.h"

#include "base/descriptors.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sy_egress_add(struct sy_egress *egress, const char *mount, const char *path, size_t length,
		   const char *below)
{
	int needed;

	if (egress->count >= SY_EGRESS_MAX)
		return;
	needed = snprintf(egress->paths[egress->count], sizeof(egress->paths[0]),
			  "/sys/fs/cgroup%s%.*s%s/cgroup.procs", mount, (int)length, path, below);
	/* A path that is cut leads elsewhere. */
	if (needed >= 0 && (size_t)needed < sizeof(egress->paths[0]))
		egress->count++;
}

void sy_egress_mount(char *mount, size_t size, const char *controllers)
{
	/* "name=systemd" is mounted as "systemd". */
	(void)snprintf(mount, size, "/%s",
		       strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers);
}

/* A process at the top stays there. */
void sy_egress_to_top(struct sy_egress *egress, const char *controllers, const char *path)
{
	char mount[128];

	if (strcmp(path, "/") == 0)
		return;
	if (*controllers) {
		sy_egress_mount(mount, sizeof(mount), controllers);
		sy_egress_add(egress, mount, "", 0, "");
	} else {
		sy_egress_add(egress, "", "", 0, "");
		sy_egress_add(egress, "/unified", "", 0, "");
	}
}

/* One line: ID:CONTROLLERS:PATH */
static void read_cgroup_line(struct sy_egress *egress, char *line, sy_egress_rule rule)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return;
	*path++ = '\0';
	rule(egress, controllers + 1, path);
}

void sy_egress_read(struct sy_egress *egress, const char *cgroups, sy_egress_rule rule)
{
	cleanup_free char *text = strdup(cgroups);
	char *rest = NULL;

	egress->count = 0;
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		read_cgroup_line(egress, line, rule);
}

/* By this rule out of our own groups; before the fork, since it uses more than system calls. */
static void find_egress(struct sy_egress *egress, sy_egress_rule rule)
{
	char text[8192];

	egress->count = 0;
	if (sy_read_path("/proc/self/cgroup", text, sizeof(text)) > 0)
		sy_egress_read(egress, text, rule);
}

/* Go: system calls only. */
static void leave_cgroup(const struct sy_egress *egress)
{
	for (size_t i = 0; i < egress->count; i++) {
		int fd = open(egress->paths[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (write(fd, "0", 1) < 0) /* 0: the writer itself */
			(void)fd;	   /* the next path may do */
		(void)close(fd);
	}
}

int sy_join_cgroup(const pid_t *pids, int count, const char *path, struct sy_error *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[16];

	for (int i = 0; i < count; i++) {
		int length = snprintf(text, sizeof(text), "%d", (int)pids[i]);

		if (fd < 0 || write(fd, text, (size_t)length) != length)
			return sy_fail_errno(err, errno, "process %d cannot be put into %s",
					     (int)pids[i], path);
	}
	return 0;
}

#define VARIABLE_SIZE 1024

void sy_argument(struct sy_arguments *to, const char *word)
{
	if (to->count + 1 < SY_ARGUMENTS_MAX)
		to->argv[to->count++] = (char *)word;
	to->argv[to->count] = NULL;
}

void sy_option(struct sy_arguments *to, const char *option, const char *value)
{
	if (to->count + 2 >= SY_ARGUMENTS_MAX)
		return;
	sy_argument(to, option);
	sy_argument(to, value);
}

/* In a process that a daemon has just forked: a thread of slurmstepd takes the user's effective ids
 * for a moment (24.11 and 26.05: when the extern step ends), and glibc gives them to all threads.
 * What we start is root's whatever the moment. System calls only. */
static void restore_root(void)
{
	if (getuid() != 0)
		return;
	(void)syscall(SYS_setresuid, 0, 0, 0);
	(void)syscall(SYS_setresgid, 0, 0, 0);
	(void)syscall(SYS_setgroups, 0, NULL);
}

struct start {
	char *const *argv, *const *environment;
	const int *fds;
	const struct sy_egress *egress;
	bool unseen;
	int pid_fd; /* its process id goes there; -1: nowhere */
};

static void leave_parent_scope(const struct start *start)
{
	restore_root();
	leave_cgroup(start->egress);
}

/* In the grandchild, between fork and exec of a process with threads: system calls only. */
__attribute__((noreturn)) static void become(const struct start *start)
{
	sigset_t none;

	if (!start->unseen)
		leave_parent_scope(start);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	sy_keep_descriptors(start->fds, start->fds[3] >= 0 ? 4 : 3);
	(void)chdir("/");
	(void)execve(start->argv[0], start->argv, start->environment);
	_exit(127);
}

/* A sampler that looks at this moment sees `above` below the daemon, and us below that. It does not
 * see the process that we fork once `above` is gone, and so does not count it as the job's. */
__attribute__((noreturn)) static void become_unseen(const struct start *start, pid_t above)
{
	const struct timespec pause = {.tv_nsec = 200000};

	while (getppid() == above)
		(void)nanosleep(&pause, NULL);
	if (fork() == 0)
		become(start);
	_exit(0);
}

/* The variable names the owner: `steelyard cluster down` looks for it. */
static void copy_variable(char *to, size_t size, const char *name)
{
	const char *value = name ? getenv(name) : NULL;

	(void)snprintf(to, size, "%s=%s", name ? name : "", value ? value : "");
}

/* Two forks and a session of its own: nobody's child, in no process group of the job. */
static void fork_twice(const struct start *start)
{
	pid_t self = getpid(), pid;

	(void)setsid();
	if (start->unseen)
		leave_parent_scope(start);
	pid = fork();
	if (pid == 0 && start->unseen)
		become_unseen(start, self);
	if (pid == 0)
		become(start);
	if (pid < 0)
		_exit(errno);
	if (start->pid_fd >= 0)
		(void)!write(start->pid_fd, &pid, sizeof(pid));
	_exit(0);
}

/* The exit code of our child; 0 where nobody may wait for it. */
static int wait_for_child(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

int sy_spawn(const struct sy_arguments *arguments, const int fds[SY_SPAWN_FDS], pid_t *pid,
	     struct sy_error *err)
{
	struct sy_egress egress = {.count = 0};
	char variable[VARIABLE_SIZE];
	char *environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C",
			       arguments->variable ? variable : NULL, NULL};
	struct start start = {.argv = arguments->argv,
			      .environment = environment,
			      .fds = fds,
			      .egress = &egress,
			      .unseen = arguments->unseen};
	int pid_pipe[2] = {-1, -1}, failure;
	pid_t child;

	if (access(arguments->argv[0], X_OK) != 0)
		return sy_fail_errno(err, errno, "cannot run node_program=%s", arguments->argv[0]);
	copy_variable(variable, sizeof(variable), arguments->variable);
	if (arguments->egress)
		find_egress(&egress, arguments->egress);
	if (pid && pipe2(pid_pipe, O_CLOEXEC) != 0)
		return sy_fail_errno(err, errno, "cannot make a pipe");
	start.pid_fd = pid_pipe[1];
	child = fork();
	if (child == 0)
		fork_twice(&start);
	if (pid) {
		(void)close(pid_pipe[1]);
		if (child < 0 || read(pid_pipe[0], pid, sizeof(*pid)) != (ssize_t)sizeof(*pid))
			*pid = 0;
		(void)close(pid_pipe[0]);
	}
	if (child < 0)
		return sy_fail_errno(err, errno, "cannot start a process");
	failure = wait_for_child(child);
	return failure ? sy_fail_errno(err, failure, "cannot start a process") : 0;
}

/* "steelyard-node COMMAND: SENTENCE": the sentence of the last line. */
static void copy_last_line(char *to, size_t size, char *text)
{
	static const char mark[] = "steelyard-node ";
	const char *line, *colon;

	for (size_t end = strlen(text); end > 0 && text[end - 1] == '\n'; end--)
		text[end - 1] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	colon = strncmp(line, mark, sizeof(mark) - 1) == 0 ? strstr(line, ": ") : NULL;
	(void)snprintf(to, size, "%s", colon ? colon + 2 : line);
}

int sy_spawn_and_read(const struct sy_arguments *arguments, int limit_ms,
		      struct sy_spawn_output *answer, struct sy_error *err)
{
	char output[4096] = "";
	int out[2], errors[2], rc;
	struct sy_pipe pipes[2];
	bool done;

	answer->out[0] = answer->message[0] = '\0';
	if (pipe2(out, O_CLOEXEC) != 0)
		return sy_fail_errno(err, errno, "cannot make a pipe");
	if (pipe2(errors, O_CLOEXEC) != 0) {
		(void)sy_fail_errno(err, errno, "cannot make a pipe");
		(void)close(out[0]);
		(void)close(out[1]);
		return -1;
	}
	rc = sy_spawn(arguments, (int[SY_SPAWN_FDS]){-1, out[1], errors[1], -1}, NULL, err);
	(void)close(out[1]);
	(void)close(errors[1]);
	pipes[0] = (struct sy_pipe){.fd = out[0], .text = answer->out, .size = answer->out_size};
	pipes[1] = (struct sy_pipe){.fd = errors[0], .text = output, .size = sizeof(output)};
	done = sy_read_pipes(pipes, 2, rc == 0 ? limit_ms : 0);
	if (rc < 0)
		return -1;
	copy_last_line(answer->message, sizeof(answer->message), output);
	if (!done)
		return sy_fail(err, "steelyard-node %s is not done within %d s", arguments->argv[1],
			       limit_ms / 1000);
	return 0;
}
