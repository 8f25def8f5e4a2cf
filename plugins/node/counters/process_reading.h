/* Reads one process of the list: /proc/PID/stat, /proc/PID/io and its CPU clock, which shows at a
 * tenth of the price whether anything has changed. */
#ifndef STEELYARD_COUNTERS_PROCESS_READING_H
#define STEELYARD_COUNTERS_PROCESS_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/process_state.h"

/* The CPU clock of a process, ns; -1 when there is none of that id (threads have none). */
int64_t sy_process_clock_ns(pid_t pid);

/* What of a process that has run is read again. */
struct sy_turn {
	bool stat, io;
};

#define SY_EVERYTHING ((struct sy_turn){true, true})

/* Read one process; marks it `gone` when it is. */
void sy_process_read(struct sy_processes *all, struct sy_process *process, struct sy_turn turn);

/* Read only its clock, after all others were read; marks it `gone` when it is. */
void sy_process_check(struct sy_process *process);

/* Read PID/FILE once, into `buffer`: its length, or -errno. `fd` keeps it open, when it may. */
ssize_t sy_process_file(struct sy_processes *all, pid_t pid, const char *file, int *fd,
			char *buffer, size_t size);

#endif
