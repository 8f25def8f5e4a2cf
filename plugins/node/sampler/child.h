/* The process that samples: all it needs is open before it gives up its rights. */
#ifndef STEELYARD_SAMPLER_CHILD_H
#define STEELYARD_SAMPLER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/node.h"
#include "record/sampling.h"
#include "sampler/in_kernel.h"
#include "sampler/shared.h"
#include "sampler/wall.h"

struct sy_child {
	struct sy_node *node;
	struct sy_shared *shared;
	int csv_fd; /* -1: only totals */
	int control_fd, parent_fd, watch_fd;
	struct sy_wall wall; /* since the files were named */
	pid_t self, parent;
	bool command; /* root is the parent: exact totals come at the end */
	const struct sy_sampling *sampling;
	struct sy_in_kernel *kernel;
};

/* The child's whole life; never returns. */
__attribute__((noreturn)) void sy_child_run(struct sy_child *child);

#endif
