/* Network conditions of a job on this node, put in place.
 *
 * The state file is written before the kernel is touched, so that whoever comes next can undo what
 * was begun (end.h): the job's end, the sampler, the next job, slurmd's start, an admin. All of it
 * is serialised by a lock in the same folder and may be called again at any time.
 *
 * tc is executed without a shell, with a time-out, from fixed folders. */
#ifndef STEELYARD_NETEM_APPLY_H
#define STEELYARD_NETEM_APPLY_H

#include <jansson.h>

#include "base/error.h"
#include "netem/request.h"

/* Put a condition in place and verify it. On success `*conditions` is the document of
 * docs/formats.md part 9 so far: also when the job has this very condition already, for another of
 * its steps. On failure nothing is changed and nothing is left. */
int sy_netem_apply(const struct sy_netem_request *request, json_t **conditions,
		   enum sy_netem_failure *failure, struct sy_error *err);

#endif
