/* Which processes of this machine are the job's. */
#ifndef STEELYARD_COUNTERS_PROCESSES_FIND_H
#define STEELYARD_COUNTERS_PROCESSES_FIND_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/processes_list.h"

/* Look for new processes of the job. */
void sy_processes_discover(struct sy_processes *all);

/* A process that runs already is the job's, and its descendants are. */
void sy_processes_follow(struct sy_processes *all, pid_t pid);

/* `controller` as in sy_parse_in_cgroup(). */
bool sy_process_is_in_cgroup(struct sy_processes *all, pid_t pid, const char *controller);

#endif
