/* What one process has used: /proc/PID/io, /proc/PID/stat, its CPU clock. */
#ifndef STEELYARD_COUNTERS_PROCESSES_READ_H
#define STEELYARD_COUNTERS_PROCESSES_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/processes_list.h"

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

/* Counts only for the children it has waited for, from now on. */
void sy_process_make_root(struct sy_processes *all, struct sy_process *process);

/* A new one, read once: NULL when it is gone already, or there is no room. */
struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, bool root);

/* Read PID/FILE once, into `buffer`: its length, or -errno. `fd` keeps it open, when it may. */
ssize_t sy_process_file(struct sy_processes *all, pid_t pid, const char *file, int *fd,
			char *buffer, size_t size);

#endif
