/* What a timer in the kernel reads of a job, while nobody wakes up. */
#ifndef STEELYARD_BPF_TICKS_H
#define STEELYARD_BPF_TICKS_H

#include "bpf/handle.h"

/* Have the kernel read it every `period_us` from now on; 0: no more. A period that was set before
 * goes on with its deadlines. 0, or -errno. */
int sy_bpf_set_ticks(struct sy_bpf *bpf, int64_t period_us);

/* All that was read since the last call, in its order: how many were lost, because nobody came in
 * time. */
int64_t sy_bpf_take_ticks(struct sy_bpf *bpf,
			  void (*take)(void *context, const struct sy_bpf_tick *tick),
			  void *context);

/* How often such a timer may be left alone: what it reads in that time is not lost. */
int64_t sy_bpf_patience_us(int64_t period_us);

#endif
