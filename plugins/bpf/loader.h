/* steelyard-bpf: the program that counts is loaded into the kernel, tried and pinned. This is the
 * only part that is linked with libbpf; samplers, daemons and prologues run it, or find what it has
 * pinned (plugins/node/bpf).
 *
 * The program is loaded whole or not at all, and what a kernel lacks is found by trying, not by its
 * release. It is pinned until the next sweep without a job; slurmd and `steelyard-bpf hold` keep it
 * until they end, `unload` unpins it at once. Samplers continue with what they have open.
 *
 * The program itself is in job_usage.bpf.c, compiled once for all kernels (CO-RE). */
#ifndef STEELYARD_BPF_LOADER_H
#define STEELYARD_BPF_LOADER_H

#include <stdbool.h>

#include "base/error.h"

/* Load it and pin it below `base`, unless that was done: with the lock held. `tasks`: for how many
 * there is room; 0: as layout.h has it. */
int sy_loader_pin(const char *base, unsigned tasks, struct sy_error *err);

/* What this kernel can. */
struct sy_bpf_trial {
	bool right;		 /* a sampler must keep CAP_BPF */
	struct sy_error message; /* that the kernel counts, or why it does not */
};

/* Load it where no other process sees it, have a job counted and read with a sampler's rights, and
 * unload all of it. */
int sy_bpf_try(unsigned tasks, struct sy_bpf_trial *trial);

#endif
