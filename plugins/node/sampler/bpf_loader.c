#include "sampler/bpf_loader.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "bpf/pins.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where no daemon keeps it, loading adds 0.18 s to a job's start: of jobs in a row only to the
 * first one's. */
#define LINGER_S "10"

#define LOAD_LIMIT_MS 10000 /* 0.2 s, of which it waits for its lock SY_BPF_PATIENCE_MS at most */

/* As SIGCHLD is ignored, it is gone as soon as it has ended. One that hangs is left to the kernel:
 * the job must not go without its samples. */
static void wait_for_loader(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + LOAD_LIMIT_MS;

	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (sy_now_ms(CLOCK_MONOTONIC) >= until_ms) {
			(void)kill(pid, SIGKILL);
			return;
		}
		(void)nanosleep(&pause, NULL);
	}
}

/* Why it cannot be loaded `steelyard-bpf status` reports, and not every job. Nobody waits for the
 * loader: a command's usage is that of all children that were waited for. */
int sy_loader_run(const char *program, const char *base, struct sy_error *reason)
{
	void (*before)(int);
	pid_t pid;

	if (sy_bpf_count_jobs(base) >= 0)
		return 0;
	before = signal(SIGCHLD, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		(void)signal(SIGCHLD, SIG_DFL);
		sy_keep_descriptors((const int[]){-1, -1, -1}, 3);
		(void)execl(program, "steelyard-bpf", "load", "--base", base, (char *)NULL);
		_exit(127);
	}
	wait_for_loader(pid);
	(void)signal(SIGCHLD, before);
	if (pid < 0 || sy_bpf_count_jobs(base) < 0)
		return sy_fail(reason, "%s cannot load it: `steelyard-bpf status` says why",
			       program);
	return 0;
}

/* The process has a name that distinguishes it from samplers, and none of our descriptors. */
static void start_lingering(const char *program, const char *base)
{
	char *environment[] = {NULL};

	if (fork() != 0)
		return;
	(void)setsid();
	sy_keep_descriptors((const int[]){-1, -1, -1}, 3);
	(void)execle(program, "steelyard-bpf", "sweep", "--after", LINGER_S, "--base", base,
		     (char *)NULL, environment);
	_exit(127);
}

static void sweep(const char *base)
{
	cleanup_close int lock = sy_bpf_lock(base, false, SY_BPF_PATIENCE_MS, NULL);

	if (lock >= 0)
		sy_bpf_sweep(base);
}

void sy_loader_release(const char *program, const char *base, bool more_may_come)
{
	int lingers;

	if (!more_may_come || strcmp(base, SY_BPF_BASE) != 0) {
		sweep(base);
		return;
	}
	lingers = sy_bpf_linger(base);
	if (lingers < 0) /* one does already */
		return;
	(void)close(lingers);
	start_lingering(program, base);
}
