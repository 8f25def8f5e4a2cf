/* Giving up the rights of root. */
#ifndef STEELYARD_BASE_RIGHTS_H
#define STEELYARD_BASE_RIGHTS_H

#include <stdbool.h>

#include "base/error.h"

/* Give up every right that the job's counters do not need, `bpf`: but for CAP_BPF. As an ordinary
 * user there is nothing to give up. */
int sy_rights_drop(bool bpf, struct sy_error *err);

/* After that: give up to look into others' processes, too, where /proc still tells of them who they
 * are and in which group (not where it is mounted with hidepid); CAP_BPF stays. Whether it
 * was given up. */
bool sy_rights_drop_ptrace(void);

/* Whether a call that this process may make is refused (-EPERM) to who has no right: tried so. */
bool sy_needs_rights(int (*call)(const void *context), const void *context);

/* Give up every right there is. */
int sy_rights_drop_all(struct sy_error *err);

#endif
