/* Whether the policy lets a user have what he asks for, before anything is queued. */
#ifndef STEELYARD_JOB_ADMISSION_H
#define STEELYARD_JOB_ADMISSION_H

#include "base/error.h"
#include "job/wishes.h"
#include "netem/policy/policy.h"

/* -1 with a sentence. Where the policy cannot be read, nothing is known: the node decides. */
int sy_admit(const char *policy_path, const struct sy_asker *who, enum sy_wish which,
	     const struct sy_wishes *wishes, struct sy_error *err);

#endif
