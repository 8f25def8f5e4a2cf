/* Jobs, and whole layouts of maps, that nobody uses leave the kernel. */
#ifndef STEELYARD_BPF_SWEEP_H
#define STEELYARD_BPF_SWEEP_H

#include <stdint.h>

/* The three below are called with the lock of `base` held. */

void sy_bpf_forget(const char *base, uint64_t job);

/* Forget each job that has neither a sampler nor a daemon of a step. Returns how many remain. */
int sy_bpf_forget_dead(const char *base);

/* The same; where none remains and no daemon keeps it (sy_bpf_use), unpin all of this layout, and
 * of other layouts what is unused. */
void sy_bpf_sweep(const char *base);

/* Jobs that are known, -1: nothing is pinned. */
int sy_bpf_count_jobs(const char *base);

/* Likewise the tasks of all of them; and the bytes that the kernel holds for all maps, each job's
 * own too, as it reports (before Linux 6.4: as it charges for their entries). */
int sy_bpf_count_tasks(const char *base);
long long sy_bpf_memory(const char *base);

#endif
