/* Whether the policy lets the user at the keyboard have a condition, before anything is queued.
 * Where slurmctld is not reached or the policy cannot be read, nothing is known: the node decides.
 */
#ifndef STEELYARD_SLURM_ADMISSION_H
#define STEELYARD_SLURM_ADMISSION_H

#include "base/error.h"
#include "job/job_options.h"

int sy_admit_here(const char *policy_path, enum sy_user_option which,
		  const struct sy_user_options *wishes, struct sy_error *err);

#endif
