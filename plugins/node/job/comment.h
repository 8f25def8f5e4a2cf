/* The summary of a job for a scheduler's accounting (docs/formats.md, part 5): from the totals of
 * this node's sampler to one line of JSON, and its place in Slurm's AdminComment among other
 * programs' text. Pure: no scheduler in here. */
#ifndef STEELYARD_JOB_COMMENT_H
#define STEELYARD_JOB_COMMENT_H

#include <stdbool.h>
#include <time.h>

#include "base/samples.h"
#include "job/job_options.h"

/* Whether the job has the node for itself. */
enum sy_exclusive { SY_NOT_SAID, SY_SHARED, SY_ALONE };

/* What a node's sampler has counted so far. */
struct sy_totals {
	bool known[SY_TOTALS]; /* false: null, never 0 */
	double value[SY_TOTALS];
	bool no_gpus;		/* the node has none */
	bool idle;		/* no step of the job has come to this node */
	bool uncounted;		/* not all that its processes have used was counted */
	bool unseen;		/* no more of it than the job's cgroup has counted */
	char memory_source[16]; /* as the record's memory.source; empty: not known */
	enum sy_exclusive exclusive;
	bool other_networks; /* programs of the job began in another network namespace */
	time_t start;	     /* in the names of the sampler's files; 0: unknown */
};

/* What cannot have been counted is no number: records are their users' to change. */
bool sy_is_countable(double value);

/* A source of the record is the job's cgroup. */
bool sy_is_cgroup(const char *source);

/* The sampler's answer to `totals`. False when it is not that. */
bool sy_totals_from_json(struct sy_totals *totals, const char *text);

#define SY_COMMENT_KEY "steelyard"
#define SY_COMMENT_MAX 4000 /* bytes */

#define SY_REASON_SIZE 96 /* longer reasons are cut: the record has them whole */

/* What the first node is; an empty string is null. */
struct sy_node_kind {
	char node_type[32];
	char vm[64];
	char container[64];
	char kernel[128];
	char reason[SY_TOTALS][SY_REASON_SIZE]; /* why a total is unknown; empty: no reason known */
};

struct sy_comment {
	struct sy_node_kind kind;
	const struct sy_tags *tags;
	long nodes;	     /* of the job; -1: not known */
	const char *netem;   /* canonical text; NULL: none requested */
	int netem_valid;     /* 1, 0; -1: not known */
	const char *refused; /* which condition the node has refused, and why; NULL: none */
	const struct sy_totals *totals; /* of this node; NULL: its sampler did not answer */
	bool so_far;			/* others of its steps may use more */
};

/* One line of JSON, to be freed, or NULL when out of memory. Tags that do not fit are left out
 * whole, from the end; `tags_left_out` counts them. */
char *sy_comment_text(const struct sy_comment *comment);

/* The same without implied fields, as it is below our key in Slurm's AdminComment. */
char *sy_comment_short(const struct sy_comment *comment);

/* Read the kind from a node's record of the start, which holds the probe; fields not found stay
 * empty. */
void sy_node_kind_from_record(struct sy_node_kind *kind, const char *text);

/* AdminComment is shared: ours is below one key, and the text of other programs stays unchanged
 * to the byte. */
#define SY_ADMIN_COMMENT_MAX 65535 /* Slurm cuts what is longer, without a word */

/* `present` (NULL: nothing) with `own`, a line of JSON, below SY_COMMENT_KEY in the place of what
 * we had written before; to be freed. NULL and `*why` when it has to be left as it is. */
char *sy_comment_merge(const char *present, const char *own, const char **reason);

/* What `present` has below our key is of a later moment of the job than `own`. */
bool sy_comment_is_later(const char *present, const char *own);

#endif
