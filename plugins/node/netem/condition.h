/* The conditions of one job on this node: a list, which a request is expanded into, and which is
 * placed, built, measured, judged and undone one after another.
 *
 * One condition has one specification, one placement and one document. Most requests are a list of
 * one, whose document is the job's own. `sites=NAME` is one condition a link; their documents are
 * in `sites.links` of the job's (docs/formats.md part 9). `trace=NAME` is one condition with
 * several steps. */
#ifndef STEELYARD_NETEM_CONDITION_H
#define STEELYARD_NETEM_CONDITION_H

#include "netem/kernel/plan.h"
#include "netem/netem.h"
#include "netem/sites.h"
#include "netem/state.h"
#include "netem/trace.h"

#define SY_CONDITIONS_MAX SY_SITES_LINKS
#define SY_PLACES_MAX	  (2 * SY_NETEM_TARGETS) /* of a condition: both directions of a device */

struct sy_condition {
	char to_site[SY_TABLE_SIZE]; /* "": no site */
	struct sy_netem requested;
	struct sy_steps steps;	     /* at least one */
	const struct sy_netem *spec; /* of the step that is in force or being built */
	json_t *document;	     /* borrowed from the job's */
	int place_count;
	struct sy_place place[SY_PLACES_MAX];
	json_t *undo[SY_PLACES_MAX]; /* of each place: its item of undo.places, borrowed */
};

struct sy_conditions {
	const struct sy_netem_request *request;
	struct sy_states states;
	char name[SY_STATE_NAME_SIZE]; /* of the state's file */
	json_t *document;	       /* the state */
	int protected_count;
	struct sy_network protect[2 * SY_PROTECTED_MAX];
	char here[SY_TABLE_SIZE];    /* this node's site; "": the request names no sites */
	char sha256[SY_SHA256_SIZE]; /* of the file of sites */
	int count;
	struct sy_condition item[SY_CONDITIONS_MAX];
	enum sy_netem_failure failure;
};

/* The list of a request: files of sites and traces are read here, and nowhere later; the policy
 * must allow each step. -1 with a sentence. */
int sy_conditions_expand(struct sy_conditions *conditions, struct sy_error *err);
void sy_conditions_free(struct sy_conditions *conditions);

#endif
