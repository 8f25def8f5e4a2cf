/* The paths at which the kernel's program and its maps are pinned: BASE/NAME, where NAME stands for
 * the layout of the maps. A process that pins or unpins there holds the lock of BASE. */
#ifndef STEELYARD_BPF_PINS_H
#define STEELYARD_BPF_PINS_H

#include <stdbool.h>

#include "base/error.h"

#define SY_BPF_BASE "/sys/fs/bpf/steelyard"
#define SY_BPF_PATH 512

#define SY_BPF_PATIENCE_MS 5000
#define SY_BPF_BUSY	   (-2) /* another process has the lock */

/* The folder of BASE in which what is being pinned lies, until all of it is there. */
#define SY_BPF_LOADING "loading"

/* The folder below BASE of this very layout. */
const char *sy_bpf_folder(void);

/* A descriptor whose closing gives the lock back; -1; SY_BPF_BUSY. `make`: where there is no such
 * folder it is made, in the filesystem of its kind, which is mounted if need be. Who has it loads,
 * some 30 ms, or hangs: after `patience_ms` others do without. */
int sy_bpf_lock(const char *base, bool make, int patience_ms, struct sy_error *err);

/* Open what is pinned as `name`: a descriptor, or -errno. */
int sy_bpf_open(const char *base, const char *name);

/* A descriptor of that folder: while a process has it open, no sweep unpins the folder. With the
 * lock held; -1: nothing is pinned. */
int sy_bpf_use(const char *base);

/* Whether a process has the folder open by sy_bpf_use: with the lock held. */
bool sy_bpf_is_used(const char *base, const char *folder);

/* Unpin a folder of BASE with all in it; a program ends when nobody has it open, either. */
void sy_bpf_unpin(const char *base, const char *folder);

/* Whoever lingers after the last job, to sweep when no other comes, is alone: a descriptor that
 * says so; -1: another one does, and sweeps for all. */
int sy_bpf_linger(const char *base);

#endif
