/* The beginning of a job's network conditions on this node. */
#ifndef STEELYARD_NETEM_SETUP_H
#define STEELYARD_NETEM_SETUP_H

#include <jansson.h>

#include "base/error.h"
#include "netem/netem.h"

/* Put the conditions of a request in place and verify them. On success `*document` is that of
 * docs/formats.md part 9 so far: also when the job has these very conditions already, for another
 * of its steps. On failure nothing is changed and nothing is left. */
int sy_netem_apply(const struct sy_netem_request *request, json_t **document,
		   enum sy_netem_failure *failure, struct sy_error *err);

#endif
