/* Where the kernel's program and its maps are pinned: BASE/NAME, NAME telling the layout of the
 * maps. Whoever puts something there or takes it away holds the lock of BASE. */
#ifndef STEELYARD_BPF_PLACE_H
#define STEELYARD_BPF_PLACE_H

#include <stdbool.h>

#include "base/error.h"

#define SY_BPF_BASE "/sys/fs/bpf/steelyard"
#define SY_BPF_PATH 512

/* The folder below BASE of this very layout. */
const char *sy_bpf_folder(void);

/* A descriptor whose closing gives the lock back; -1. `make`: where there is no such folder it is
 * made, in the filesystem of its kind, which is mounted if need be. */
int sy_bpf_lock(const char *base, bool make, struct sy_error *err);

/* Open what is pinned as `name`: a descriptor, or -errno. */
int sy_bpf_open(const char *base, const char *name);

/* Unpin a folder of BASE with all in it; a program ends when nobody has it open, either. */
void sy_bpf_unpin(const char *base, const char *folder);

/* Forget jobs whose samplers are gone; when none is left, unpin all. With the lock held. Returns
 * how many are left. */
int sy_bpf_sweep(const char *base);

/* Jobs that are known, -1: nothing is pinned. */
int sy_bpf_count_jobs(const char *base);

#endif
