/* Processes that are not the job's: that is found out once for each, or for a whole session. */
#ifndef STEELYARD_COUNTERS_PROCESSES_OTHERS_H
#define STEELYARD_COUNTERS_PROCESSES_OTHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/processes_list.h"

/* Ids in (low, high] are new; `everything`: a new root or cgroup may make others the job's. */
void sy_others_begin(struct sy_processes *all, bool everything, int64_t low, int64_t high);

/* `pid` is of this session, and not the job's. */
void sy_others_add(struct sy_processes *all, pid_t pid, pid_t session);

/* No process, or another's. Every id is looked at in two samples. */
bool sy_others_have(const struct sy_processes *all, pid_t pid);

#endif
