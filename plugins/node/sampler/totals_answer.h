/* The answer to the message `totals`, a line of JSON: `{"question":NUMBER, "start":…}`, the totals
 * that AdminComment has, `other_networks` 1 where a program of the job began in another network
 * namespace, `probe` and `missing` as in AdminComment. Where the record would be incomplete of
 * processes, `unseen` is 1 if the job's cgroup has counted their CPU, else `uncounted`. */
#ifndef STEELYARD_SAMPLER_TOTALS_ANSWER_H
#define STEELYARD_SAMPLER_TOTALS_ANSWER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

/* The node's kind and why totals are missing, of the record of the start: members of an object
 * without its braces, for every answer. Empty where `size` is too small. */
void sy_answer_kind(const json_t *record, char *text, size_t size);

struct sy_answer_head {
	int64_t question;     /* its number, or -1 */
	int64_t start_unix_s; /* in the names of the sampler's files */
	const char *kind;     /* of sy_answer_kind() */
};

/* Returns the length; no NUL ends it. */
size_t sy_totals_json(const struct sy_answer_head *head, const struct sy_status *status, char *text,
		      size_t size);

#endif
