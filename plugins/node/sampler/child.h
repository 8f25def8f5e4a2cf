/* The process that samples: all it needs is open before it gives up its rights. */
#ifndef STEELYARD_SAMPLER_CHILD_H
#define STEELYARD_SAMPLER_CHILD_H

#include "sampler/child_state.h"

/* The child's whole life. */
__attribute__((noreturn)) void sy_child_run(struct sy_child *child);

#endif
