/* Messages to a sampler (docs/formats.md part 4), and the job's fields and tags that they set. */
#ifndef STEELYARD_RECORD_MESSAGE_H
#define STEELYARD_RECORD_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_MESSAGE_SIZE	  4096
#define SY_TAG_KEY_SIZE	  65 /* with its NUL */
#define SY_TAG_VALUE_SIZE 1024
#define SY_GPUS_SIZE	  1024 /* of each list of `gpus` */

enum sy_word {
	SY_WORD_ROOT,
	SY_WORD_CGROUP,
	SY_WORD_TAG,
	SY_WORD_RATE,
	SY_WORD_EXCLUSIVE,
	SY_WORD_JOB,
	SY_WORD_DONE,
	SY_WORD_PEAK,
	SY_WORD_CACHE,
	SY_WORD_UNMET,
	SY_WORD_GPUS,
	SY_WORD_TOTALS,
	SY_WORD_LEAVE,
	SY_WORD_LOST,
	SY_WORD_LATE,
	SY_WORD_INTIME,
	SY_WORD_SESSION,
	SY_WORD_ATTACH,
	SY_WORD_END,
};

struct sy_message {
	enum sy_word word;
	pid_t pid;	   /* root, done, session, attach */
	int64_t number[5]; /* done: µs, rchar, wchar, read, write; peak: bytes; totals: the
			    * question's number, or -1 */
	bool has_bytes;	   /* done: the last four */
	double rate_hz;
	bool exclusive;
	char key[SY_TAG_KEY_SIZE]; /* tag, job, unmet */
	const char
	    *value; /* tag, job, cgroup, cache, unmet, gpus: inside the text that was parsed */
};

/* Parse one message: 0, or -1 with what is wrong with it. */
int sy_message_parse(const char *text, struct sy_message *message, struct sy_error *err);

/* What has been told about the job, each an object; `conditions` has the record's "cache", and
 * under "unmet" by field of the record why a condition that was asked for is not there, under
 * "gpus" what tasks have said of theirs. */
struct sy_told {
	json_t *job, *tags, *conditions;
};

/* Take what a message says about the job; other messages are left alone. */
void sy_message_apply(const struct sy_message *message, const struct sy_told *told);

#endif
