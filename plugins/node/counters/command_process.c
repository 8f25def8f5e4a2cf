#include "counters/command_process.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "counters/command_usage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

	exact->io_known = sy_reaped_io(exact->io) == 0;
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
