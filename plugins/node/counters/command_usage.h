/* What a command that we start (command_process.h) and wait for has used, its children included. */
#ifndef STEELYARD_COUNTERS_COMMAND_USAGE_H
#define STEELYARD_COUNTERS_COMMAND_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sy_exact {
	bool known;		      /* the command has ended */
	bool has_unreaped_children;   /* and children of its ran on, which are not in here */
	int64_t begin_us, elapsed_us; /* CLOCK_MONOTONIC; from just before its fork to its end */
	int64_t cpu_us, user_us, system_us, max_memory_bytes;
	int64_t minor_faults, major_faults;
	bool io_known;
	int64_t io[4]; /* rchar, wchar, read, write; until sy_read_command_io: of before it */
	int exit_code, signal; /* -1: none */
};

/* What readings of processes may show beyond what was waited for: the rounding of clock ticks. */
#define SY_TICKS_ROUNDING_US 20000

/* wait4 for any child, which is added: what it returns. */
pid_t sy_reap(pid_t command, int flags, struct sy_exact *exact);

/* I/O of this process' children that have been waited for, and of threads that have ended: rchar,
 * wchar, read, write. -1 where a thread was reading or writing at each attempt, for some 50 ms. */
int sy_reaped_io(int64_t io[4]);

/* Once, when the command has ended: its bytes. A shell that executed us has left us the counters of
 * the children that it waited for, which are subtracted. */
void sy_read_command_io(struct sy_exact *exact);

/* The command's exit code, or 128 and its signal. */
int sy_exit_code(const struct sy_exact *exact);

#endif
