/* One condition on its way into the kernel: what apply.c, placement.c and build.c hand on. */
#ifndef STEELYARD_NETEM_CONDITION_H
#define STEELYARD_NETEM_CONDITION_H

#include "netem/kernel/device.h"
#include "netem/kernel/plan.h"
#include "netem/request.h"
#include "netem/sites.h"
#include "netem/state.h"
#include "netem/trace.h"

#define SY_PLACES_MAX 64 /* of all links of sites */

struct sy_condition {
	const struct sy_netem_request *request;
	const struct sy_netem *spec;  /* of a trace: its first step, once it is read */
	const struct sy_trace *trace; /* NULL: none */
	const struct sy_sites *sites; /* NULL: none; else each link is a condition by itself */
	int link;		      /* that of `sites` which is being placed or built */
	struct sy_states states;
	char name[SY_STATE_NAME_SIZE]; /* of the state's file */
	json_t *document;	       /* the state */
	int protected_count;
	struct sy_network protect[2 * SY_PROTECTED_MAX];
	int count;
	struct sy_place place[SY_PLACES_MAX];
	enum sy_netem_failure failure;
};

/* What is asked for at the place that is being worked on, and the document that tells of it. */
const struct sy_netem *sy_condition_spec(const struct sy_condition *condition);
json_t *sy_condition_document(const struct sy_condition *condition);

#endif
