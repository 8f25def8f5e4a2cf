/* Who may call bpf(2). */
#ifndef STEELYARD_BPF_RIGHTS_H
#define STEELYARD_BPF_RIGHTS_H

#include <stdbool.h>
#include <sys/resource.h>

#include "bpf/handle.h"

/* Whether the kernel refuses bpf(2) to who has no right, even on what is open already: before Linux
 * 5.19 where kernel.unprivileged_bpf_disabled is not 0. As root, who is refused nothing. */
bool sy_bpf_wants_right(const struct sy_bpf *bpf);

/* Before Linux 5.11 maps and programs count as locked memory of who makes them. Lift the limit of
 * this process, as root; and give it back, for what it starts has the limit, too. */
struct rlimit sy_bpf_lift_limit(void);
void sy_bpf_restore_limit(const struct rlimit *before);

#endif
