/* Giving up the rights of root. */
#ifndef STEELYARD_BASE_RIGHTS_H
#define STEELYARD_BASE_RIGHTS_H

#include <stdbool.h>

#include "base/error.h"

/* Give up every right that the job's counters do not need, `bpf`: but for CAP_BPF. As an ordinary
 * user there is nothing to give up. */
int sy_rights_drop(bool bpf, struct sy_error *err);

/* Afterwards: give up the right to inspect other processes, too, where /proc still shows their
 * ids and cgroups (not with hidepid); CAP_BPF stays. Returns whether it was given up. */
bool sy_rights_drop_ptrace(void);

/* True when a call is refused (-EPERM) without a right: it is tried in a child. */
bool sy_needs_rights(int (*call)(const void *context), const void *context);

/* Give up every right there is. */
int sy_rights_drop_all(struct sy_error *err);

#endif
