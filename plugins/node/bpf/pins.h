/* The paths at which the kernel's program and its maps are pinned: BASE/NAME, where NAME
 * identifies the layout of the maps. A process that pins or unpins there holds the lock of BASE. */
#ifndef STEELYARD_BPF_PINS_H
#define STEELYARD_BPF_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SY_BPF_BASE "/sys/fs/bpf/steelyard"
#define SY_BPF_PATH 512

#define SY_BPF_PATIENCE_MS 5000
#define SY_BPF_BUSY	   (-2) /* another process has the lock */

/* The folder of BASE for pins that are not complete yet. */
#define SY_BPF_LOADING "loading"

/* The folder below BASE of this very layout. */
const char *sy_bpf_folder(void);

/* A descriptor that releases the lock when it is closed; -1; SY_BPF_BUSY. `make`: create the
 * folder in a bpf filesystem, which is mounted if need be. The owner of the lock loads for some
 * 30 ms, or hangs: after `patience_ms` callers continue without it. */
int sy_bpf_lock(const char *base, bool make, int patience_ms, struct sy_error *err);

/* Open what is pinned as `name`: a descriptor, or -errno. */
int sy_bpf_open(const char *base, const char *name);

/* A descriptor of that folder: while a process has it open, no sweep unpins the folder. With the
 * lock held; -1: nothing is pinned. */
int sy_bpf_use(const char *base);

/* Whether a process has the folder open by sy_bpf_use: with the lock held. */
bool sy_bpf_is_used(const char *base, const char *folder);

/* Whether a folder of BASE has pins: of this layout, of another one, or of a killed load. */
bool sy_bpf_has_pins(const char *base);

/* Unpin a folder of BASE with all in it; a program ends when nobody has it open, either. */
void sy_bpf_unpin(const char *base, const char *folder);

/* One process at a time lingers after the last job, to sweep when no other job comes: a
 * descriptor that marks it; -1: another process lingers already. */
int sy_bpf_linger(const char *base);

/* --- swept: with the lock held --- */

/* Remove a job from all maps. */
void sy_bpf_forget(const char *base, uint64_t job);

/* Forget each job that has neither a sampler nor a daemon of a step. Returns how many remain. */
int sy_bpf_forget_dead(const char *base);

/* The same; where none remains and no daemon keeps the program (sy_bpf_use), unpin all of this
 * layout, and of other layouts what is unused. */
void sy_bpf_sweep(const char *base);

/* --- counted --- */

/* Jobs that are known; -1: nothing is pinned. */
int sy_bpf_count_jobs(const char *base);

/* Likewise the tasks of all of them; and the bytes that the kernel holds for all maps, each job's
 * own too, as it reports (before Linux 6.4: as it charges for their entries). */
int sy_bpf_count_tasks(const char *base);
long long sy_bpf_memory(const char *base);

#endif
