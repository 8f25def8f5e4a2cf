/* What a user may request for a job, whoever schedules it: tags, the sampling rate, network
 * conditions, the caches. Their grammar, the text in which any scheduler carries them, and whether
 * the policy allows them. Pure: no scheduler in here. */
#ifndef STEELYARD_JOB_JOB_OPTIONS_H
#define STEELYARD_JOB_JOB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

#define SY_TAG_KEY_MAX	 64
#define SY_TAG_VALUE_MAX 256
#define SY_TAGS_MAX	 32

struct sy_tags {
	size_t count;
	char items[SY_TAGS_MAX][SY_TAG_KEY_MAX + 1 + SY_TAG_VALUE_MAX + 1]; /* KEY=VALUE */
};

/* 0 when `text` is KEY=VALUE with KEY [A-Za-z][A-Za-z0-9_.-]{0,63} and VALUE 1 to 256 printable
 * ASCII characters; -1 and what is wrong otherwise. */
int sy_tag_check(const char *text, struct sy_error *err);

/* Add a tag, or replace the value of an existing key. -1: faulty, or SY_TAGS_MAX reached. */
int sy_tags_add(struct sy_tags *tags, const char *text, struct sy_error *err);

/* All tags in one string, separated by a character that no tag can hold; for an environment
 * variable, since Slurm itself carries only the last value of an option. The length, or -1 when
 * `size` is too small. */
int sy_tags_join(const struct sy_tags *tags, char *text, size_t size);

/* Add the tags of such a string; faulty ones are left out (the variable is the user's). */
void sy_tags_add_joined(struct sy_tags *tags, const char *text);

#define SY_CVMFS_MB_MAX 1000000000 /* a petabyte */

enum sy_cache { SY_CACHE_AS_IT_IS, SY_CACHE_WARM, SY_CACHE_COLD };

struct sy_user_options {
	struct sy_tags tags;
	bool has_rate;
	double rate_hz;
	bool has_netem;
	struct sy_netem netem;
	enum sy_cache cache;
	int64_t cvmfs_mb; /* limit of CVMFS' cache; 0: the policy's */
	/* On the node: why a requested condition cannot be parsed (the user can change the text
	 * on its way); "": no fault. */
	char fault[sizeof(((struct sy_error *)0)->text)];
};

enum sy_user_option {
	SY_USER_OPTION_TAG,
	SY_USER_OPTION_RATE,
	SY_USER_OPTION_NETEM,
	SY_USER_OPTION_CACHE,
	SY_USER_OPTIONS
};

struct sy_user_option_fact {
	const char *name, *value, *help;
	bool condition; /* a job must not run without it */
};

extern const struct sy_user_option_fact sy_user_option_facts[SY_USER_OPTIONS];

/* Take one; -1 with what was expected. */
int sy_user_option_parse(struct sy_user_options *options, enum sy_user_option which,
			 const char *text, double max_rate_hz, struct sy_error *err);

/* The tag that records the requested state of the caches. */
void sy_tag_cache_option(struct sy_user_options *options);

/* Whether the node must be changed for the job. */
bool sy_user_options_change_node(const struct sy_user_options *options);

/* The user's message about a faulty option: "--netem=SPEC: expected …". SPEC is cut and made
 * printable: a user must not be able to write lines into a log. */
void sy_format_option_fault(char *to, size_t size, enum sy_user_option which, const char *text,
			    const struct sy_error *err);

/* A user's options as one word that any scheduler carries (docs/formats.md part 11):
 * netem=delay%3D50ms:tag=a%3Db, of a value every byte but A-Z a-z 0-9 . _ - as %XX. */
#define SY_REQUEST_MAX 16384 /* bytes: more is no request of ours */

/* Append one option; -1 when it does not fit. `text` is not checked. */
int sy_request_add(char *request, size_t size, enum sy_user_option which, const char *text,
		   struct sy_error *err);

/* Pass every option of a request with its decoded value to `accept`; -1 with the fault, also that
 * of `accept`. */
int sy_request_read(const char *request,
		    int (*accept)(void *context, enum sy_user_option which, const char *text,
				  struct sy_error *err),
		    void *context, struct sy_error *err);

/* Whether the policy allows a user what they request, before anything is queued: -1 with a sentence
 * when it does not. Where the policy cannot be read, nothing is known: the node decides. */
int sy_check_policy(const char *policy_path, const struct sy_requester *requester,
		    enum sy_user_option which, const struct sy_user_options *options,
		    struct sy_error *err);

#endif
