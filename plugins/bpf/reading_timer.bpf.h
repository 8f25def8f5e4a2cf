/* What a job has used, read by a timer: no process wakes up, and the sampler takes the readings
 * once a second. */
#ifndef STEELYARD_BPF_READING_TIMER_H
#define STEELYARD_BPF_READING_TIMER_H

#include "job_reading.bpf.h"

#define AT_ONCE	  1024	  /* tasks: some 0.5 ms in which its CPU does nothing else */
#define PAUSE_NS  1000000 /* before the next of them */
#define MONOTONIC 1

struct ticker {
	struct bpf_timer timer;
	__u64 period_ns, next_ns;
};
_Static_assert(sizeof(struct ticker) == sizeof(struct sy_bpf_ticker), "a timer's size");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SY_BPF_JOBS);
	__type(key, __u64);
	__type(value, struct ticker);
} tickers SEC(".maps");

/* True when this reading is complete. */
static __always_inline bool continue_walk(struct sy_bpf_job *job, struct walk *w, __u64 now)
{
	if (w->list->at == 0) {
		w->sum.at_ns = now;
		w->sum.used = job->ended;
		bpf_loop(SY_BPF_LIST, add_new, w, 0);
	} else {
		w->sum = w->list->now;
	}
	bpf_loop(AT_ONCE, read_one, w, 0);
	if (w->list->at < w->list->count) {
		w->list->now = w->sum;
		return false;
	}
	w->list->at = 0;
	w->sum.unlisted = count_unlisted(job, w->list);
	return true;
}

static __always_inline void publish(struct sy_bpf_job *job, const struct sy_bpf_tick *tick)
{
	job->tick[job->ticks % SY_BPF_TICKS] = *tick;
	__sync_fetch_and_add(&job->ticks, 1); /* earlier writes are visible */
}

/* The next deadline of a grid, which a reading that takes long does not move. */
static __always_inline __u64 delay_ns(struct ticker *ticker, __u64 now)
{
	__u64 late = now - ticker->next_ns, period = ticker->period_ns ? ticker->period_ns : 1;

	if (now >= ticker->next_ns)
		ticker->next_ns += (late / period + 1) * period;
	return ticker->next_ns - now;
}

static int on_tick(void *map, __u64 *id, struct ticker *ticker)
{
	__u64 now = bpf_ktime_get_ns(), delay = PAUSE_NS;
	struct sy_bpf_job *job = job_of(*id);
	struct walk w = {};

	if (!job || !job->keepers || !start_walk(&w, *id))
		return 0;
	if (continue_walk(job, &w, now)) {
		publish(job, &w.sum);
		delay = delay_ns(ticker, bpf_ktime_get_ns());
	}
	bpf_timer_start(&ticker->timer, delay, 0);
	__sync_fetch_and_add(&job->ticks_ns, bpf_ktime_get_ns() - now);
	return 0;
}

/* Not while it runs: when this has come back, the list is the caller's. */
SEC("syscall")
int set_ticks(struct sy_bpf_ticking *requested)
{
	__u64 id = requested->job, now = bpf_ktime_get_ns();
	struct ticker *ticker = bpf_map_lookup_elem(&tickers, &id);

	if (!ticker)
		return 1;
	bpf_timer_cancel(&ticker->timer);
	if (!requested->period_ns)
		return 0;
	if (ticker->period_ns != requested->period_ns)
		ticker->next_ns = now + requested->period_ns;
	ticker->period_ns = requested->period_ns;
	bpf_timer_init(&ticker->timer, &tickers, MONOTONIC);
	bpf_timer_set_callback(&ticker->timer, on_tick);
	return bpf_timer_start(&ticker->timer, delay_ns(ticker, now), 0) != 0;
}

#endif
