/* The conditions of one job on this node: a list, which a request is expanded into, and which is
 * placed, built, measured, judged and undone one after another.
 *
 * One condition has one specification, one placement and one document. Most requests are a list of
 * one, whose document is the job's own. `sites=NAME` is one condition a link; their documents are
 * in `sites.links` of the job's (docs/formats.md part 9). `trace=NAME` is one condition with
 * several steps. */
#ifndef STEELYARD_NETEM_JOB_CONDITIONS_H
#define STEELYARD_NETEM_JOB_CONDITIONS_H

#include "netem/kernel/tc_batch.h"
#include "netem/netem.h"
#include "netem/sites_file.h"
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
	int placement_count;
	struct sy_placement placement[SY_PLACES_MAX];
	json_t *undo[SY_PLACES_MAX]; /* of each place: its item of undo.places, borrowed */
};

struct sy_conditions {
	const struct sy_netem_request *request;
	struct sy_states states;
	char name[SY_STATE_NAME_SIZE]; /* of the state's file */
	json_t *document;	       /* the state */
	int protected_count;
	struct sy_network protect[2 * SY_PROTECTED_MAX];
	char own_site[SY_TABLE_SIZE]; /* this node's site; "": the request names no sites */
	char sha256[SY_SHA256_SIZE];  /* of the file of sites */
	int count;
	struct sy_condition item[SY_CONDITIONS_MAX];
	enum sy_netem_failure failure;
};

/* The list of a request: files of sites and traces are read here, and nowhere later; the policy
 * must allow each step. -1 with a sentence. */
int sy_conditions_expand(struct sy_conditions *conditions, struct sy_error *err);
void sy_conditions_free(struct sy_conditions *conditions);

/* --- documents --- */

/* The job's document is made before anything is done, and read again at its end. Where each
 * condition's is in it is known to condition_document.c alone (condition_verification.c measures
 * and judges): of a list of one it is the job's own; with sites each has its own below
 * `sites.links`, and the job's has their sums and is valid when all are. */

/* Fill in `document` of the job and of each condition, owner included: nothing is measured yet.
 * -1: a delay table is missing, or the owner cannot be read. */
int sy_conditions_make_document(struct sy_conditions *conditions, struct sy_error *err);

/* The document of one condition, a borrowed reference; NULL: there is no such number. */
json_t *sy_condition_document(json_t *state, size_t number);

/* What the document's condition requests, of several steps the one in force: 0; -1: it cannot be
 * read. */
int sy_condition_read_spec(const json_t *document, struct sy_netem *spec);

/* The round-trip times of every condition that has a peer, into `rtt.MOMENT` of its document. A
 * peer that did not answer before is not measured again. A measurement that may end later than
 * `until_us` (CLOCK_MONOTONIC; 0: no limit) is not begun. */
void sy_conditions_measure(json_t *state, const char *moment, int64_t until_us);

/* Every condition, and the job's document. */
void sy_conditions_judge(json_t *state);

/* --- places in the kernel --- */

/* Read the devices and decide where each condition goes: its places, and undo.places of the job's
 * document. Nothing is changed, but for a root of ours that no state knows: that is removed. */
int sy_conditions_place(struct sy_conditions *conditions, struct sy_error *err);

/* Build every place; `devices` of the job's document gets what the kernel reports back, which must
 * be what was requested. */
int sy_conditions_build(struct sy_conditions *conditions, struct sy_error *err);

/* Attach the program to the job's cgroup that marks its packets, once the queues are built; nothing
 * to do where the node is the job's alone. */
int sy_conditions_attach(const struct sy_conditions *conditions, struct sy_error *err);

/* Give one built place the parameters of condition->spec, and read them back. */
int sy_condition_change(const struct sy_condition *condition, const struct sy_placement *placement,
			struct sy_error *err);

/* --- conditions with more than one step --- */

/* Under the lock, once the conditions hold: record their first step and start the processes. From
 * then on `trace` of the document grows with each step (docs/formats.md part 9). A process ends by
 * itself when the state has another owner or is gone, or its owner is. */
int sy_conditions_follow(struct sy_conditions *conditions, struct sy_error *err);

/* At the end: a condition whose steps were not made as its trace has it is invalid, with the
 * reason; `held_s` of the trace, and a note, where its last line held longer than the trace is
 * long. */
void sy_conditions_end_steps(json_t *state, double now_boot_s);

#endif
