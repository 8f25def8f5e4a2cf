/* The list of a job's processes, and what each has used (process_reading.h reads it).
 *
 * A process of the list is a root (only the children that it has waited for count), or counts
 * itself and those children. One that is older than the sampler counts from then on. */
#ifndef STEELYARD_COUNTERS_PROCESS_LIST_H
#define STEELYARD_COUNTERS_PROCESS_LIST_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/process_state.h"

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid);

/* A new one, read once: NULL when it is gone already, or there is no room. */
struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, bool root);

/* Counts only for the children it has waited for, from now on. */
void sy_process_make_root(struct sy_processes *all, struct sy_process *process);

/* Ids or places of the list have changed. */
void sy_processes_index(struct sy_processes *all);

/* Give back the descriptors of a process. */
void sy_process_close(struct sy_processes *all, struct sy_process *process);

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more);

#endif
