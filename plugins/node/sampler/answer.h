/* The answer to the message `totals` (docs/formats.md part 4). */
#ifndef STEELYARD_SAMPLER_ANSWER_H
#define STEELYARD_SAMPLER_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "record/status.h"

/* Not ended by NUL: its length. `question`: its number, or -1. `start_unix_s`: in the names of the
 * sampler's files. */
size_t sy_totals_json(int64_t question, int64_t start_unix_s, const struct sy_status *status,
		      char *text, size_t size);

#endif
