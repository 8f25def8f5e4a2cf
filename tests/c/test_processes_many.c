/* Hundreds of processes, and all of them gone at once: so many calls, so many open files, no more.
 */
#include "tap.h"

#include "counters/process_table.h"
#include "counters/processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 600
#define KEPT 1024 /* files */

static int clocks, closes; /* calls: clocks of the children, files */
static pid_t child[MANY];

/* Not what others start on this machine meanwhile. */
static bool is_child(pid_t pid)
{
	for (int i = 0; i < MANY; i++)
		if (child[i] == pid)
			return true;
	return false;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	clocks += clock < 0 && is_child(~(clock >> 3));
	return (int)syscall(SYS_clock_gettime, clock, now);
}

int close(int fd)
{
	closes++;
	return (int)syscall(SYS_close, fd);
}

static struct sy_processes all;

static void start_all(void)
{
	for (int i = 0; i < MANY; i++) {
		child[i] = fork();
		if (child[i] < 0) /* kill(-1) would be for everybody */
			exit(ok(false, "a child"));
		if (child[i] > 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
}

static void end_all(void)
{
	for (int i = 0; i < MANY; i++)
		(void)kill(child[i], SIGKILL);
	for (int i = 0; i < MANY; i++)
		(void)waitpid(child[i], NULL, 0);
}

static int wrongly_found(void)
{
	int wrong = 0;

	for (int i = 0; i < MANY; i++) {
		const struct sy_process *found = sy_process_find(&all, child[i]);

		wrong += !found || found->pid != child[i];
	}
	return wrong;
}

int main(void)
{
	struct sy_error err;

	ok(sy_processes_init(&all, 0, 0, 16384, &err) == 0, "a sampler");
	sy_processes_root(&all, getpid());
	start_all();
	sy_processes_refresh(&all, false);
	is_int(sy_processes_alive(&all), MANY, "children are found");
	is_int(wrongly_found(), 0, "each is found by its id");
	is_int(all.fds_after, 0, "as many files are kept open as may be");
	clocks = 0;
	sy_processes_refresh(&all, false);
	is_int(clocks, 2 * MANY, "a clock of each is read, and once more when all were read");
	end_all();
	clocks = closes = 0;
	sy_processes_refresh(&all, false);
	is_int(sy_processes_alive(&all), 0, "all have gone");
	/* Some more: what others start on this machine meanwhile. */
	ok(closes >= KEPT - 2 && closes < KEPT + MANY / 4, "files closed: %d", closes);
	is_int(clocks, MANY, "each was looked for once");
	ok(!sy_process_find(&all, child[0]) && sy_process_find(&all, getpid()), "the root is left");
	return done_testing();
}
