/* Giving up the rights of root. */
#ifndef STEELYARD_BASE_RIGHTS_H
#define STEELYARD_BASE_RIGHTS_H

#include <stdbool.h>

#include "base/error.h"

/* Give up every right that the job's counters do not need. As an ordinary user there is nothing to
 * give up. */
int sy_rights_drop(struct sy_error *err);

/* After that: give up to look into others' processes, too, where /proc still tells of them who they
 * are and in which group (not where it is mounted with hidepid). Whether it was given up. */
bool sy_rights_drop_ptrace(void);

/* Give up every right there is. */
int sy_rights_none(struct sy_error *err);

/* As sy_rights_drop, before dumpcap is executed, which is left the one right that packet(7) asks
 * for. */
int sy_rights_capture(struct sy_error *err);

#endif
