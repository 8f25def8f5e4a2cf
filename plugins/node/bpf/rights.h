/* Who may call bpf(2). */
#ifndef STEELYARD_BPF_RIGHTS_H
#define STEELYARD_BPF_RIGHTS_H

#include <stdbool.h>

#include "bpf/handle.h"

/* Whether the kernel refuses bpf(2) to who has no right, even on what is open already: before Linux
 * 5.19 where kernel.unprivileged_bpf_disabled is not 0. As root, who is refused nothing. */
bool sy_bpf_wants_right(const struct sy_bpf *bpf);

#endif
