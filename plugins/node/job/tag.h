/* The grammar of the plugin's options, and a list of tags. Pure: no scheduler in here. */
#ifndef STEELYARD_JOB_TAG_H
#define STEELYARD_JOB_TAG_H

#include <stddef.h>

#include "base/error.h"

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

/* Add a tag, or replace the value of a key that is there. -1: faulty, or SY_TAGS_MAX reached. */
int sy_tags_add(struct sy_tags *tags, const char *text, struct sy_error *err);

/* All tags in one string, separated by a character that no tag can hold; for an environment
 * variable, since Slurm itself carries only the last value of an option. The length, or -1 when
 * `size` is too small. */
int sy_tags_join(const struct sy_tags *tags, char *text, size_t size);

/* Add the tags of such a string; faulty ones are left out (the variable is the user's). */
void sy_tags_add_joined(struct sy_tags *tags, const char *text);

#endif
