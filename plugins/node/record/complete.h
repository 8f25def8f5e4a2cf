/* Whether a record lacks anything. The one rule: what its processes have used is complete
 * - where the kernel counted them (bpf), or
 * - where their cgroup's CPU and what steps have reported agree (counters/agreement.h), or
 * - where it is a command that was waited for, that left no process behind, and of whose processes
 *   samples show no more than was waited for.
 * Else it is not, and the reason has the gap in seconds, where there is a cgroup to show it. A job
 * that named no process has none that could be missing. */
#ifndef STEELYARD_RECORD_COMPLETE_H
#define STEELYARD_RECORD_COMPLETE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "counters/command_usage.h"
#include "record/status.h"

/* The cgroup has counted more CPU than steps have reported, beyond what the two may differ by. */
bool sy_has_gap(const struct sy_status *status);

/* Of a command: samples, or the kernel, show more than was waited for. */
bool sy_exact_lacks(const struct sy_exact *exact, const struct sy_status *status);

/* Whether a record covers the whole job, and if not, what of it and why; `exact` is of a command,
 * or NULL; `ended` is the child's status. */
void sy_record_completeness(json_t *record, const struct sy_status *status,
			    const struct sy_exact *exact, pid_t child, int ended);

#endif
