/* The maps that are one job's own: in maps of maps, below the job's number. */
#ifndef STEELYARD_BPF_OWN_MAPS_H
#define STEELYARD_BPF_OWN_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/handle.h"

/* Under the lock. 0, or -errno; who has made them reaps (sy_bpf_reap). */
int sy_bpf_make_maps(struct sy_bpf *bpf, const char *base, uint64_t now_ns);

/* Whether somebody has begun the job already: then they are open. */
bool sy_bpf_open_maps(struct sy_bpf *bpf, const char *base);

/* Whether the job has been begun, by whomever, within so many milliseconds. */
bool sy_bpf_await(const char *base, uint64_t number, int patience_ms);

/* Wait for the children that begin has left: who has begun a job says this, or close, some time. */
void sy_bpf_reap(struct sy_bpf *bpf);

#endif
