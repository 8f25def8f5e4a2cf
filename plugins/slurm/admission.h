/* What can be refused in the user's own command, before anything is queued. The node asks the same
 * questions again: there it is known who asks, and where. */
#ifndef STEELYARD_SLURM_ADMISSION_H
#define STEELYARD_SLURM_ADMISSION_H

#include "base/error.h"
#include "netem/spec/spec.h"

/* Each 0, or -1 with one sentence. A policy that is not on this host, or that this user may not
 * read, refuses nothing here: the node's own decides. */
int sy_admit_netem(const char *policy_path, const struct sy_netem *spec, struct sy_error *err);
int sy_admit_cold_cache(const char *policy_path, struct sy_error *err);
int sy_admit_capture(const char *policy_path, struct sy_error *err);

#endif
