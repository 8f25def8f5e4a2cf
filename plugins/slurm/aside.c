#include "aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job/spawn.h"
#include "leave_cgroup.h"
#include "own_usage.h"

/* --- in the process of its own ---------------------------------------------------------------- */

/* The job's pipes would stay open, and Slurm's log has nothing to get from here; what is written to
 * a number that is in use nevertheless goes nowhere. */
static void let_go(const struct sy_aside_work *work, int tell)
{
	int null = open("/dev/null", O_RDWR);
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd != null && fd != tell &&
		    fd != work->keep)
			(void)dup2(null, fd);
	}
}

/* A copy of a process that had other threads, of which one may have held a lock: the alarm ends it
 * then. */
__attribute__((noreturn)) static void go_aside(const struct sy_aside_work *work, int tell)
{
	sigset_t none;

	(void)alarm(work->limit_s);
	(void)signal(SIGALRM, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, "sy-comment");
	let_go(work, tell);
	work->work(work->context, tell);
	_exit(0);
}

/* Outside of the job's groups before it begins, and nobody's child: a sampler that looks at this
 * moment would take it, and all that it reads and writes, for a process of the job. One that saw
 * `above` below slurmstepd, and us below that, does not know whom we start. */
__attribute__((noreturn)) static void start_unseen(const struct sy_aside_work *work, int tell,
						   pid_t above)
{
	const struct timespec pause = {.tv_nsec = 200000};
	pid_t pid;

	while (getppid() == above)
		(void)nanosleep(&pause, NULL);
	pid = fork();
	if (pid != 0)
		_exit(pid < 0);
	pid = getpid(); /* told before any word of its own, by whom no other can overtake */
	if (write(tell, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		_exit(1);
	go_aside(work, tell);
}

__attribute__((noreturn)) static void step_aside(const struct sy_aside_work *work, int tell,
						 const struct sy_way_out *way)
{
	pid_t self = getpid();

	(void)setsid();
	sy_be_root_again();
	sy_leave_cgroup(way);
	if (fork() == 0)
		start_unseen(work, tell, self);
	_exit(0);
}

/* --- in slurmstepd ---------------------------------------------------------------------------- */

void sy_aside_start(struct sy_aside *aside, const struct sy_aside_work *work, int wait_ms)
{
	struct sy_way_out way = {.count = 0};
	struct pollfd ready = {.events = POLLIN};
	struct rusage usage;
	int told[2];
	pid_t child, waited = 0;

	*aside = (struct sy_aside){.fd = -1};
	if (pipe2(told, O_CLOEXEC) != 0)
		return;
	sy_way_out_find(&way, sy_way_out_of_slurm);
	child = fork();
	if (child == 0)
		step_aside(work, told[1], &way);
	(void)close(told[1]);
	while (child > 0 && (waited = wait4(child, NULL, 0, &usage)) < 0 && errno == EINTR)
		;
	if (waited > 0)
		sy_own_usage_leave_out(&usage);
	ready.fd = told[0];
	if (child > 0 && poll(&ready, 1, wait_ms) > 0 &&
	    read(told[0], &aside->pid, sizeof(pid_t)) == (ssize_t)sizeof(pid_t))
		aside->fd = told[0];
	else
		(void)close(told[0]);
}
