/* The kernel's program: loaded, tried, pinned. The only part that is linked with libbpf. */
#ifndef STEELYARD_BPF_LOADER_H
#define STEELYARD_BPF_LOADER_H

#include <stdbool.h>

#include "base/error.h"

/* What the running kernel takes, found out by trying it. */
struct sy_bpf_can {
	bool count; /* the events of a task's life: all else rests on it */
	bool walk;  /* a job's own tasks are gone through, and not all of the node's */
	bool tick;  /* by a timer in the kernel, too */
	bool group; /* who is moved into a job's cgroup, or started by PBS, becomes the job's */
};

struct sy_bpf_limits {
	unsigned tasks;			 /* 0: as many as layout.h says */
	bool no_walk, no_tick, no_group; /* as if the kernel could not */
};

/* Load it and pin it below `base`, unless that was done: with the lock held. What was loaded goes
 * into `can`, unless that is NULL. */
int sy_loader_pin(const char *base, const struct sy_bpf_limits *limits, struct sy_bpf_can *can,
		  struct sy_error *err);

#endif
