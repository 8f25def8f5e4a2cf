/* Whether a record lacks anything. */
#ifndef STEELYARD_RECORD_COMPLETE_H
#define STEELYARD_RECORD_COMPLETE_H

#include <jansson.h>
#include <sys/types.h>

#include "record/status.h"

/* Whether a record covers the whole job, and if not, what of it and why; `ended` is the child's
 * status. */
void sy_record_completeness(json_t *record, const struct sy_status *status, pid_t child, int ended);

#endif
