/* The process that samples: all it needs is open before it gives up its rights. */
#ifndef STEELYARD_SAMPLER_CHILD_H
#define STEELYARD_SAMPLER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/node.h"
#include "record/sampling.h"
#include "sampler/shared.h"

struct sy_child {
	struct sy_node *node;
	struct sy_shared *shared;
	int csv_fd; /* -1: only totals */
	int control_fd, parent_fd, watch_fd;
	int64_t start_unix_s; /* in the names of the files */
	pid_t self, parent;
	bool command; /* root is the parent: exact totals come at the end */
	const struct sy_sampling *sampling;
};

/* The child's whole life; never returns. */
__attribute__((noreturn)) void sy_child_run(struct sy_child *child);

#endif
