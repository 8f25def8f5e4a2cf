/* What is loaded stays in the kernel while somebody holds it, pinned or not: a first job then need
 * not wait until it is loaded. Nothing is pinned for that. The kernel's numbers of what is held
 * stand in BASE/held-NAME, as symbolic links (a bpf filesystem takes no files), and are believed
 * while their holder lives. */
#ifndef STEELYARD_BPF_HELD_H
#define STEELYARD_BPF_HELD_H

#include <stdbool.h>

#include "base/error.h"

#define SY_BPF_MOST_HELD 32

struct sy_bpf_holder {
	int folder; /* -1: nothing is held */
	int fd[SY_BPF_MOST_HELD], count;
};
#define SY_BPF_HOLDS_NOTHING                                                                       \
	{                                                                                          \
		.folder = -1                                                                       \
	}

/* Both as root, with the lock of `base` held: hold what is pinned there until sy_bpf_let_go, or
 * until the process ends. 0, or -1 with nothing held. */
int sy_bpf_hold(struct sy_bpf_holder *holder, const char *base, struct sy_error *err);
void sy_bpf_let_go(struct sy_bpf_holder *holder, const char *base);

/* Whether anybody holds it. */
bool sy_bpf_is_held(const char *base);

/* Whether it is pinned, now, because it was, or because somebody holds it and it could be pinned
 * again: as root. With the lock held; the other takes it, and waits so long for it (-1: any time).
 */
bool sy_bpf_pin_held(const char *base);
bool sy_bpf_is_ready(const char *base, int patience_ms);

/* A map that is held, though it may not be pinned: a descriptor, or -errno. */
int sy_bpf_open_held_map(const char *base, const char *name);

#endif
