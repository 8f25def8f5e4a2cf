/* The policy's file: KEY VALUE…, # to the end of a line is a comment. */
#ifndef STEELYARD_NETEM_POLICY_FILE_H
#define STEELYARD_NETEM_POLICY_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "netem/policy/policy.h"

#define SY_POLICY_PATH "/etc/steelyard/netem.conf"

/* Read a policy. A missing file is a valid policy that allows nothing. A file that is not root's,
 * that others may write to, or that has a line it does not understand is an error (-> NULL): its
 * name, the line, what was expected. `must_be_root` false: tests. */
struct sy_policy *sy_policy_read(const char *path, bool must_be_root, struct sy_error *err);
void sy_policy_free(struct sy_policy *policy);

#endif
