/* The places of a condition, made in the kernel. */
#ifndef STEELYARD_NETEM_BUILD_H
#define STEELYARD_NETEM_BUILD_H

#include "base/error.h"
#include "netem/condition.h"

/* Build the places; `devices` of the document gets what the kernel says. */
int sy_condition_build(struct sy_condition *condition, struct sy_error *err);

/* Give one place that stands the parameters of condition->spec, and read them back. */
int sy_condition_change(struct sy_condition *condition, const struct sy_place *place,
			struct sy_error *err);

#endif
