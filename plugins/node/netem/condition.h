/* One condition on its way into the kernel: what apply.c, placement.c and build.c hand on. */
#ifndef STEELYARD_NETEM_CONDITION_H
#define STEELYARD_NETEM_CONDITION_H

#include "netem/apply.h"
#include "netem/kernel/device.h"
#include "netem/kernel/plan.h"
#include "netem/state.h"

#define SY_PLACES_MAX (2 * SY_NETEM_TARGETS)

struct sy_condition {
	const struct sy_netem_request *request;
	const struct sy_netem *spec;
	struct sy_states states;
	char name[SY_STATE_NAME_SIZE]; /* of the state's file */
	json_t *document;	       /* the state */
	int protected_count;
	struct sy_network protect[2 * SY_PROTECTED_MAX];
	int count;
	struct sy_place place[SY_PLACES_MAX];
	enum sy_netem_failure failure;
};

#endif
