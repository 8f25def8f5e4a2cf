/* The program on a job's cgroup that tells its packets from others'. */
#ifndef STEELYARD_NETEM_SCOPING_H
#define STEELYARD_NETEM_SCOPING_H

#include "netem/condition.h"

/* Once its queues stand; nothing to do where the node is the job's alone. */
int sy_condition_attach(const struct sy_condition *condition, struct sy_error *err);

#endif
