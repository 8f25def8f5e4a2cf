/* What a state and a record tell of sites (docs/formats.md part 9): each link has a document of its
 * own under `sites.links`, measured and judged like that of a condition; the whole is valid when
 * all of them are. */
#ifndef STEELYARD_NETEM_SITES_DOCUMENT_H
#define STEELYARD_NETEM_SITES_DOCUMENT_H

#include <jansson.h>

#include "base/error.h"
#include "netem/condition.h"

/* `sites` of the document: nothing is measured yet. NULL: a delay table of a link is not there. */
json_t *sy_sites_document(const struct sy_condition *condition, const struct sy_sites *sites,
			  struct sy_error *err);

/* What a state's condition asks, one after another: 1; 0: there is no such `number`; -1: it cannot
 * be read. A condition without sites has one. */
int sy_sites_spec_of(const json_t *state, size_t number, struct sy_netem *spec);

/* The document of a link; NULL where there is none. */
json_t *sy_sites_link(const json_t *state, size_t number);

/* The round-trip times of every link that has a peer, into `rtt.MOMENT` of its document. A peer
 * that had not answered before is not asked again. */
void sy_sites_measure(json_t *state, const char *moment, int64_t until_us);

/* Every link, and the whole. */
void sy_sites_judge(json_t *state);

#endif
