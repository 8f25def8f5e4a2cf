/* steelyard-time FILE COMMAND [ARGUMENT…]: weighs one command where the sampler is not, inside of a
 * container, by the same clock and the same counters. Writes KEY=VALUE lines to FILE when the
 * command has ended, and exits as it did.
 *
 * Linked statically: it is brought into images whose C library may be any. */
#include "base/quantities.h"
#include "counters/command_usage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char help[] =
    "usage: steelyard-time FILE COMMAND [ARGUMENT…]\n"
    "\n"
    "Weighs one command where no sampler is, inside of a container. Lines KEY=VALUE are in FILE\n"
    "when it has ended: its time, its CPU time, what it read and wrote. Exits as it did.\n";

static void put_seconds(FILE *file, const char *name, int64_t us)
{
	(void)fprintf(file, "%s=%lld.%06lld\n", name, (long long)(us / 1000000),
		      (long long)(us % 1000000));
}

static int write_down(const char *path, const struct sy_exact *exact)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -1;
	(void)fprintf(file, "exit_code=%d\n", sy_exit_code(exact));
	put_seconds(file, sy_total_facts[SY_ELAPSED_S].name, exact->elapsed_us);
	put_seconds(file, sy_total_facts[SY_CPU_S].name, exact->cpu_us);
	put_seconds(file, "user_s", exact->user_us);
	put_seconds(file, "system_s", exact->system_us);
	for (int i = 0; i < 4 && exact->io_known; i++)
		(void)fprintf(file, "%s=%lld\n", sy_total_facts[SY_RCHAR_BYTES + i].name,
			      (long long)exact->io[i]);
	return fclose(file);
}

int main(int argc, char **argv)
{
	struct sy_exact exact = {.exit_code = -1, .signal = -1};
	pid_t command;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	if (argc < 3) {
		(void)fputs(help, stderr);
		return 2;
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* what the command leaves behind is its own */
	(void)sy_take_signals();		/* they are for the command */
	command = sy_start_command(argv + 2, &exact);
	while (command > 0 && !exact.known && (sy_reap(command, 0, &exact) > 0 || errno == EINTR))
		;
	while (sy_reap(command, WNOHANG, &exact) > 0)
		;
	exact.io_known = sy_reaped_io(exact.io) == 0;
	if (exact.known && write_down(argv[1], &exact) < 0)
		(void)fprintf(stderr, "steelyard-time: cannot write %s: %s\n", argv[1],
			      strerror(errno));
	return sy_exit_code(&exact);
}
