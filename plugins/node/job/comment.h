/* What is told of a job in a scheduler's accounting (docs/formats.md, part 5). Pure: no scheduler
 * in here. */
#ifndef STEELYARD_JOB_COMMENT_H
#define STEELYARD_JOB_COMMENT_H

#include <stdbool.h>

#include "job/tag.h"
#include "job/totals.h"

#define SY_COMMENT_KEY "steelyard"
#define SY_COMMENT_MAX 4000 /* bytes */

#define SY_WHY_SIZE 96 /* longer reasons are cut: the record has them whole */

/* What the first node is; an empty string is null. */
struct sy_node_kind {
	char node_type[32];
	char vm[64];
	char container[64];
	char kernel[128];
	char why[SY_TOTALS][SY_WHY_SIZE]; /* a total is not known there; empty: not said */
};

struct sy_comment {
	struct sy_node_kind kind;
	const struct sy_tags *tags;
	long nodes;	     /* of the job; -1: not known */
	const char *netem;   /* canonical text; NULL: none were asked for */
	int netem_valid;     /* 1, 0; -1: not known */
	const char *refused; /* which condition the node has refused, and why; NULL: none */
	const struct sy_totals *totals; /* of this node; NULL: its sampler did not answer */
	bool so_far;			/* others of its steps may use more */
};

/* One line of JSON, to be freed, or NULL when out of memory. Tags that do not fit are left out
 * whole, from the end; `tags_left_out` says how many. */
char *sy_comment_text(const struct sy_comment *comment);

/* The same without what goes without saying: what stands below our key in Slurm's AdminComment. */
char *sy_comment_short(const struct sy_comment *comment);

/* Read the kind from a node's record of the start, which holds the probe; fields not found stay
 * empty. */
void sy_node_kind_from_record(struct sy_node_kind *kind, const char *text);

#endif
