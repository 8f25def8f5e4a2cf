/* What a user may ask of us, whoever schedules the job: its words, and how they are taken. */
#ifndef STEELYARD_JOB_WISHES_H
#define STEELYARD_JOB_WISHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/tag.h"
#include "netem/spec/spec.h"

#define SY_CVMFS_MB_MAX 1000000000 /* a petabyte */

enum sy_cache { SY_CACHE_AS_IT_IS, SY_CACHE_WARM, SY_CACHE_COLD };

struct sy_wishes {
	struct sy_tags tags;
	bool has_rate;
	double rate_hz;
	bool has_netem;
	struct sy_netem netem;
	enum sy_cache cache;
	int64_t cvmfs_mb; /* limit of CVMFS' cache; 0: the policy's */
	/* On the node: a condition was asked for that cannot even be understood (what carries it is
	 * the user's to change), and why; "": none. */
	char fault[sizeof(((struct sy_error *)0)->text)];
};

enum sy_wish { SY_WISH_TAG, SY_WISH_RATE, SY_WISH_NETEM, SY_WISH_CACHE, SY_WISHES };

struct sy_wish_word {
	const char *name, *value, *help;
	bool condition; /* a job must not run without it */
};

extern const struct sy_wish_word sy_wish_words[SY_WISHES];

/* Take one; -1 with what was expected. */
int sy_wish_take(struct sy_wishes *wishes, enum sy_wish which, const char *text, double max_rate_hz,
		 struct sy_error *err);

/* The tag by which a record says what was asked of the caches. */
void sy_wish_tag_cache(struct sy_wishes *wishes);

/* Whether the node must be changed for the job. */
bool sy_wishes_change_node(const struct sy_wishes *wishes);

/* What the user is told of a faulty one: "--netem=SPEC: expected …", of SPEC only what is fit for a
 * log: whoever gave it must not write lines there. */
void sy_wish_said(char *to, size_t size, enum sy_wish which, const char *text,
		  const struct sy_error *err);

#endif
