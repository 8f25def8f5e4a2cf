/* The places of conditions, made in the kernel. */
#ifndef STEELYARD_NETEM_BUILD_H
#define STEELYARD_NETEM_BUILD_H

#include "base/error.h"
#include "netem/condition.h"

/* Build every place; `devices` of the job's document gets what the kernel reports back, which must
 * be what was requested. */
int sy_conditions_build(struct sy_conditions *conditions, struct sy_error *err);

/* Attach the program to the job's cgroup that marks its packets, once the queues are built; nothing
 * to do where the node is the job's alone. */
int sy_conditions_attach(const struct sy_conditions *conditions, struct sy_error *err);

/* Give one built place the parameters of condition->spec, and read them back. */
int sy_condition_change(const struct sy_condition *condition, const struct sy_place *place,
			struct sy_error *err);

#endif
