/* The children of this process: a command that is measured, its start, signals meanwhile, its end;
 * and what children that were waited for have used, their own included. */
#ifndef STEELYARD_COUNTERS_CHILD_PROCESSES_H
#define STEELYARD_COUNTERS_CHILD_PROCESSES_H

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

/* Once, before anything is started: SIGCHLD has its default action. Where it is ignored, as a
 * parent may have left it, no child can be waited for. The command gets the earlier setting back.
 */
void sy_default_sigchld(void);

/* A shell that has executed us may have left us its children, which are not the command's. Then a
 * child of this process returns from here, and this one ends as that child does, and passes signals
 * on to it. */
void sy_leave_earlier_children(void);

/* A signal descriptor: children's ends, and signals to pass on to the command. A full disk and a
 * closed reader are errors of writing, not signals; the command gets the earlier settings back. */
int sy_open_signals(void);

/* Start a command: its process id, or -1. A command that cannot be executed exits with 127 (not
 * found) or 126, as in a shell. */
pid_t sy_start_command(char **argv, struct sy_exact *exact);

/* Where its end could be waited for only like this: its exit code. */
int sy_run_unmeasured(char **argv);

/* wait4 for any child, which is added: what it returns. */
pid_t sy_reap(pid_t command, int flags, struct sy_exact *exact);

/* Once, when the command has ended: its bytes. A shell that executed us has left us the counters of
 * the children that it waited for, which are subtracted. */
void sy_read_command_io(struct sy_exact *exact);

/* The command's exit code, or 128 and its signal. */
int sy_exit_code(const struct sy_exact *exact);

/* What the children of this process have used: after a step's last task the whole step, processes
 * too short for a sample included.
 *
 * The kernel adds the counters of a child to its parent's when the parent waits for it. The bytes
 * of the parent's own threads are in the same counters: slurmstepd reads all of /proc, some 100 kB,
 * each time it polls for the accounting. They are subtracted thread by thread, while all of them
 * live: at the end of the last task, before the polling thread ends. */
struct sy_own_usage {
	long long cpu_us;
	long long largest_bytes; /* resident set of the largest child; 0: not known */
	bool io_known;		 /* false: a thread of ours was reading or writing meanwhile */
	int64_t io[4];		 /* rchar, wchar, read_bytes, write_bytes */
};

/* False when the kernel does not report it. */
bool sy_own_usage_read(struct sy_own_usage *usage);

#endif
