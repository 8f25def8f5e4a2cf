/* What this kernel can, tried as a sampler does it. */
#ifndef STEELYARD_BPF_TRIAL_H
#define STEELYARD_BPF_TRIAL_H

#include "loader.h"

struct sy_bpf_trial {
	bool right; /* a sampler must keep CAP_BPF */
	struct sy_error says;
};

/* Load it where nobody else sees it, have a job counted and read with a sampler's rights, and let
 * all of it go again. `says`: that it counts, or why it does not. */
int sy_bpf_try(const struct sy_bpf_limits *limits, struct sy_bpf_trial *trial);

#endif
