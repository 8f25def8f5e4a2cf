/* The document of a job's conditions (docs/formats.md part 9), from which they are measured and
 * judged: made before anything is done, and read again at the job's end.
 *
 * Where the document of each condition is in the job's is known here alone: of a list of one it is
 * the job's own; with sites each has its own under `sites.links`, and the job's has their sums and
 * is valid when all of them are. */
#ifndef STEELYARD_NETEM_DOCUMENT_H
#define STEELYARD_NETEM_DOCUMENT_H

#include <jansson.h>

#include "base/error.h"
#include "netem/condition.h"

/* Fill in `document` of the job and of each condition, owner included: nothing is measured yet.
 * -1: a delay table is missing, or the owner cannot be read. */
int sy_conditions_make_document(struct sy_conditions *conditions, struct sy_error *err);

/* The document of one condition, a borrowed reference; NULL: there is no such number. */
json_t *sy_condition_document(json_t *state, size_t number);

/* What the document's condition requests, of several steps the one in force: 0; -1: it cannot be
 * read. */
int sy_condition_read_spec(const json_t *document, struct sy_netem *spec);

/* The round-trip times of every condition that has a peer, into `rtt.MOMENT` of its document. A
 * peer that had not answered before is not asked again. What may end later than `until_us`
 * (CLOCK_MONOTONIC; 0: no limit) is not begun. */
void sy_conditions_measure(json_t *state, const char *moment, int64_t until_us);

/* Every condition, and the job's document. */
void sy_conditions_judge(json_t *state);

#endif
