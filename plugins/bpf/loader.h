/* The kernel's program: loaded, tried, pinned. The only part that is linked with libbpf. */
#ifndef STEELYARD_BPF_LOADER_H
#define STEELYARD_BPF_LOADER_H

#include "base/error.h"

struct sy_bpf_limits {
	unsigned tasks; /* 0: as many as layout.h says */
};

/* Load it and pin it below `base`, unless that was done: with the lock held. All of it loads, or
 * nothing: what the kernel lacks is found out by trying. */
int sy_loader_pin(const char *base, const struct sy_bpf_limits *limits, struct sy_error *err);

#endif
