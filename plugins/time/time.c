/* steelyard-time FILE COMMAND [ARGUMENT…]: measures one command where the sampler is not: inside of
 * a container, or below the shells of a study's run. By the same clock and the same counters.
 * Writes KEY=VALUE lines to FILE when the command has ended, and exits as it did.
 *
 * Memory is the largest sum of the resident sets of the command's processes, read ten times in the
 * first second and once a second from then on, and at least the largest single process (wait4).
 * CPU time that these readings show beyond what was waited for (children of a parent that ignores
 * SIGCHLD) is in unwaited_cpu_s, and its bytes are not known; left_behind is there where children
 * ran on when the command ended.
 *
 * Linked statically: it is brought into images whose C library may be any. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/samples.h"
#include "counters/child_processes.h"
#include "counters/processes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_MS  100  /* between two readings of memory, in the first second */
#define LATER_MS  1000 /* from then on */
#define KEPT_OPEN 64   /* descriptors */

static const char help[] =
    "usage: steelyard-time FILE COMMAND [ARGUMENT…]\n"
    "\n"
    "Measures one command where no sampler is. Lines KEY=VALUE are in FILE when it has ended: its\n"
    "time, its CPU time, its memory, what it read and wrote. Exits as it did.\n";

static void put_seconds(FILE *file, const char *name, int64_t us)
{
	(void)fprintf(file, "%s=%lld.%06lld\n", name, (long long)(us / 1000000),
		      (long long)(us % 1000000));
}

/* The largest sums over living processes; -1: not read. */
struct seen {
	int64_t resident_bytes, cpu_us;
};

static int write_usage(const char *path, const struct sy_exact *exact, const struct seen *seen)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -1;
	(void)fprintf(file, "exit_code=%d\n", sy_exit_code(exact));
	if (exact->has_unreaped_children)
		(void)fputs("left_behind=1\n", file);
	if (seen->cpu_us > exact->cpu_us + SY_TICKS_ROUNDING_US)
		put_seconds(file, "unwaited_cpu_s", seen->cpu_us - exact->cpu_us);
	put_seconds(file, sy_total_facts[SY_ELAPSED_S].name, exact->elapsed_us);
	put_seconds(file, sy_total_facts[SY_CPU_S].name, exact->cpu_us);
	put_seconds(file, "user_s", exact->user_us);
	put_seconds(file, "system_s", exact->system_us);
	(void)fprintf(file, "largest_process_bytes=%lld\n", (long long)exact->max_memory_bytes);
	if (seen->resident_bytes >= 0) /* else what several processes held at once is not known */
		(void)fprintf(file, "%s=%lld\n", sy_total_facts[SY_MAX_MEMORY_BYTES].name,
			      (long long)(seen->resident_bytes > exact->max_memory_bytes
					      ? seen->resident_bytes
					      : exact->max_memory_bytes));
	for (int i = 0; i < 4 && exact->io_known; i++)
		(void)fprintf(file, "%s=%lld\n", sy_total_facts[SY_RCHAR_BYTES + i].name,
			      (long long)exact->io[i]);
	return fclose(file);
}

/* Our descendants, or NULL. After the command has been executed: what we hold until then would
 * count as its largest resident set. */
static struct sy_processes *start_reading(pid_t command)
{
	struct sy_processes *all = calloc(1, sizeof(*all));
	struct sy_error error;

	if (all && sy_processes_init(all, 0, 0, KEPT_OPEN, &error) == 0) {
		sy_processes_root(all, getpid());
		/* Younger processes only: looking at all of them would delay the reading of its
		 * end. */
		all->walk_all = false;
		all->last_pid = all->last_pid_before = command - 1;
		return all;
	}
	free(all);
	return NULL;
}

static void read_processes(struct sy_processes *all, struct seen *seen)
{
	int64_t resident_bytes, cpu_us;

	sy_processes_refresh(all, false);
	resident_bytes = sy_processes_rss_bytes(all);
	cpu_us = sy_processes_total(all).use[SY_USE_CPU_NS] / 1000;
	if (resident_bytes > seen->resident_bytes)
		seen->resident_bytes = resident_bytes;
	if (cpu_us > seen->cpu_us)
		seen->cpu_us = cpu_us;
}

/* Until the command has ended. */
static struct seen wait_for_command(pid_t command, int signals, struct sy_exact *exact)
{
	struct sy_processes *all = signals < 0 ? NULL : start_reading(command);
	struct seen seen = {.resident_bytes = all ? 0 : -1, .cpu_us = -1};
	int64_t next = exact->begin_us + 1000LL * FIRST_MS;
	struct signalfd_siginfo ignored;

	while (!exact->known) {
		struct pollfd wait = {.fd = signals, .events = POLLIN};
		int64_t now = sy_now_us(CLOCK_MONOTONIC);

		if (all && now >= next) {
			read_processes(all, &seen);
			next = now + 1000 * (now - exact->begin_us < 1000000 ? FIRST_MS : LATER_MS);
		}
		if (all && poll(&wait, 1, (int)((next - now) / 1000) + 1) > 0)
			while (read(signals, &ignored, sizeof(ignored)) > 0)
				;
		while (!exact->known) {
			pid_t pid = sy_reap(command, all ? WNOHANG : 0, exact);

			if (pid < 0 && errno != EINTR)
				return seen;
			if (pid == 0)
				break;
		}
	}
	free(all);
	return seen;
}

int main(int argc, char **argv)
{
	struct sy_exact exact = {.exit_code = -1, .signal = -1};
	struct seen seen = {-1, -1};
	pid_t command, reaped;
	int signals;

	sy_open_streams();
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	if (argc < 3) {
		(void)fputs(help, stderr);
		return 2;
	}
	sy_default_sigchld();
	sy_leave_earlier_children();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* what the command leaves behind is its own */
	signals = sy_open_signals();		/* they are for the command */
	command = sy_start_command(argv + 2, &exact);
	if (command > 0)
		seen = wait_for_command(command, signals, &exact);
	do
		reaped = sy_reap(command, WNOHANG, &exact);
	while (reaped > 0);
	exact.has_unreaped_children = reaped == 0;
	sy_read_command_io(&exact);
	if (exact.known && write_usage(argv[1], &exact, &seen) < 0)
		(void)fprintf(stderr, "steelyard-time: cannot write %s: %s\n", argv[1],
			      strerror(errno));
	return sy_exit_code(&exact);
}
