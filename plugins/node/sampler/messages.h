/* Messages to the sampling child (docs/formats.md part 4), and its answers.
 *
 * The answer to the message `totals`, a line of JSON: `{"question":NUMBER, "start":…}`, the totals
 * that AdminComment has, `other_networks` 1 where a program of the job began in another network
 * namespace, `probe` and `missing` as in AdminComment. Where the record would be incomplete of
 * processes, `unseen` is 1 if the job's cgroup has counted their CPU, else `uncounted`. */
#ifndef STEELYARD_SAMPLER_MESSAGES_H
#define STEELYARD_SAMPLER_MESSAGES_H

#include <jansson.h>
#include <stddef.h>

#include "sampler/child_state.h"

/* Act on all messages that wait, of the control socket or of the parent. Those about the job are
 * passed to the parent, for the record. */
void sy_sampler_listen(struct sy_sampler *s, int fd);

/* The node's kind and why totals are missing, of the record of the start: members of an object
 * without its braces, for every answer. Empty where `size` is too small. */
void sy_answer_kind(const json_t *record, char *text, size_t size);

#endif
