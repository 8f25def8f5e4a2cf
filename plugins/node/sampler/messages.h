/* What the sampler is told while it runs. */
#ifndef STEELYARD_SAMPLER_MESSAGES_H
#define STEELYARD_SAMPLER_MESSAGES_H

#include "sampler/child_state.h"

/* Act on all messages that wait. */
void sy_sampler_listen(struct sy_sampler *s, int fd);

#endif
