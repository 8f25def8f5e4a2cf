/* Messages of the control socket and of the parent, which the child acts on (docs/formats.md part
 * 4). Those about the job are passed to the parent, for the record. */
#ifndef STEELYARD_SAMPLER_MESSAGES_H
#define STEELYARD_SAMPLER_MESSAGES_H

#include "sampler/child_state.h"

/* Act on all messages that wait. */
void sy_sampler_listen(struct sy_sampler *s, int fd);

#endif
