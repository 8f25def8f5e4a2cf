/* What the process that samples is given by its parent. */
#ifndef STEELYARD_SAMPLER_INHERITED_H
#define STEELYARD_SAMPLER_INHERITED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/node.h"
#include "record/record.h"
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

#endif
