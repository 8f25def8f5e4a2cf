#include "bpf/ticks.h"

#include "bpf/call.h"

#include <errno.h>

int sy_bpf_set_ticks(struct sy_bpf *bpf, int64_t period_us)
{
	struct sy_bpf_ticking asked = {.job = bpf->job, .period_ns = (uint64_t)period_us * 1000};
	int result = bpf->ticks ? sy_bpf_run(bpf->set_ticks, &asked, sizeof(asked)) : -ENOTSUP;

	bpf->period_us = result < 0 ? 0 : period_us;
	return result;
}

/* The kernel may be about to write over the oldest one of a full ring. */
static bool is_lost(const volatile struct sy_bpf_job *job, uint64_t number)
{
	return job->ticks - number >= SY_BPF_TICKS;
}

int64_t sy_bpf_take_ticks(struct sy_bpf *bpf,
			  void (*take)(void *context, const struct sy_bpf_tick *tick),
			  void *context)
{
	uint64_t written, lost = 0;

	if (!bpf->mapped)
		return 0;
	written = __atomic_load_n(&bpf->mapped->ticks, __ATOMIC_ACQUIRE);
	if (bpf->taken < written && written - bpf->taken > SY_BPF_TICKS) {
		lost = written - SY_BPF_TICKS - bpf->taken;
		bpf->taken = written - SY_BPF_TICKS;
	}
	for (; bpf->taken < written; bpf->taken++) {
		struct sy_bpf_tick tick = bpf->mapped->tick[bpf->taken % SY_BPF_TICKS];

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (is_lost(bpf->mapped, bpf->taken))
			lost++;
		else
			take(context, &tick);
	}
	return lost < INT64_MAX ? (int64_t)lost : INT64_MAX;
}

int64_t sy_bpf_patience_us(int64_t period_us)
{
	return period_us * (SY_BPF_TICKS / 2);
}
