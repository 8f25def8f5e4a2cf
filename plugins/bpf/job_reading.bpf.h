/* What a job has used until now, read on request; or by a timer: no process wakes up, and the
 * sampler takes the readings once a second. */
#ifndef STEELYARD_BPF_JOB_READING_H
#define STEELYARD_BPF_JOB_READING_H

#include "adopt.bpf.h"

static __always_inline void sum_usage(struct sy_bpf_usage *sum, const struct sy_bpf_usage *u)
{
	sum->cpu_ns += u->cpu_ns;
	sum->user_ns += u->user_ns;
	sum->system_ns += u->system_ns;
	sum->rchar += u->rchar;
	sum->wchar += u->wchar;
	sum->read_bytes += u->read_bytes;
	sum->write_bytes += u->write_bytes;
	sum->minflt += u->minflt;
	sum->majflt += u->majflt;
	sum->threads += u->threads;
	sum->processes += u->processes;
}

/* From Linux 6.2 on: fields read as they stand, whatever the address. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak;

static __always_inline __u64 pages_before_6_2(const struct mm_struct *mm)
{
	const struct mm_struct___before_6_2 *old = (const void *)mm;

	return BPF_CORE_READ(old, rss_stat.count[0].counter) +
	       BPF_CORE_READ(old, rss_stat.count[1].counter) +
	       BPF_CORE_READ(old, rss_stat.count[3].counter);
}

/* As in /proc/PID/stat: pages of files, anonymous pages, shared memory. */
static __always_inline __u64 resident_pages(const struct mm_struct *mm)
{
	long long pages;

	if (!mm)
		return 0;
	if (bpf_core_field_exists(((struct mm_struct___before_6_2 *)0)->rss_stat.count))
		return pages_before_6_2(mm);
	pages = BPF_CORE_READ(mm, rss_stat[0].count) + BPF_CORE_READ(mm, rss_stat[1].count) +
		BPF_CORE_READ(mm, rss_stat[3].count);
	return pages > 0 ? pages : 0;
}

struct walk {
	struct sy_bpf_list *list;
	void *queue;
	__u64 job;
	struct sy_bpf_tick sum;
};

static long add_new(__u32 i, struct walk *w)
{
	struct sy_bpf_listed item;
	__u64 at = w->list->count;

	if (at >= SY_BPF_LIST || bpf_map_pop_elem(w->queue, &item))
		return 1;
	asm volatile("" : "+r"(at));
	if (at >= SY_BPF_LIST)
		return 1;
	w->list->task[at] = item;
	w->list->count = at + 1;
	return 0;
}

static __always_inline struct sy_bpf_member *find_listed(const struct sy_bpf_listed *item,
							 __u64 job)
{
	__u64 key = item->task;
	struct sy_bpf_member *member = bpf_map_lookup_elem(&tasks, &key);

	if (!member || member->born != item->born || member->job != job ||
	    !is_counted(member->kind))
		return 0;
	return member;
}

/* A process outlives its main thread, and so does its memory. Until a child of vfork(2) runs a
 * program its memory is its parent's. */
static __always_inline __u64 pages_of_process(const struct task_struct *task,
					      const struct mm_struct *mm,
					      const struct sy_bpf_member *member, bool lives)
{
	if (!mm && lives)
		mm = (const void *)member->memory;
	return BPF_CORE_READ(task, real_parent, mm) == mm ? 0 : resident_pages(mm);
}

struct live {
	struct sy_bpf_usage used;
	__u64 start_time, pages;
	bool is_free, lives; /* a thread of its process does */
	bool runnable;
};

#define READ_LIVE(READ, t, member, live)                                                           \
	do {                                                                                       \
		(live)->start_time = READ(t, start_time);                                          \
		READ_USAGE(READ, t, &(live)->used);                                                \
		(live)->lives = BPF_CORE_READ(t, signal, live.counter) > 0;                        \
		(live)->pages = (live)->used.processes                                             \
				    ? pages_of_process(t, READ(t, mm), member, (live)->lives)      \
				    : 0;                                                           \
		(live)->runnable = !READ(t, __state);                                              \
		(live)->is_free = READ(t, usage.refs.counter) <= 0;                                \
		if (READ(t, start_time) != (live)->start_time)                                     \
			(live)->start_time = 0;                                                    \
	} while (0)

static __always_inline void read_task(__u64 address, const struct sy_bpf_member *member,
				      struct live *live)
{
	const struct task_struct *task = (const struct task_struct *)address;

	if (bpf_rdonly_cast) {
		task =
		    bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct task_struct));
		READ_LIVE(DIRECT, task, member, live);
	} else {
		READ_LIVE(BPF_CORE_READ, task, member, live);
	}
}

/* The member exists before and after the reading, so the values are this task's unless the kernel
 * reported no end (Linux 6.18 misses one in a thousand on a busy machine). Then the memory is
 * free or another task's, and the last valid reading counts. */
static __always_inline bool read_live(const struct sy_bpf_listed *item, struct walk *w)
{
	const struct task_struct *task = (const struct task_struct *)item->task;
	struct sy_bpf_member *member = find_listed(item, w->job);
	struct live live;
	__u64 start_time;

	if (!member)
		return false;
	start_time = *(volatile __u64 *)&member->start_time;
	read_task(item->task, member, &live);
	if (*(volatile __u64 *)&member->born != item->born)
		return false;
	if (live.start_time != start_time || live.is_free) {
		if (live.start_time && (live.is_free || !is_same_task(task, member)))
			finish_member(task, member, false);
		return false;
	}
	if (member->ended)
		member->counted = live.used;
	if (member->kind != SY_BPF_MEMBER)
		return true;
	sum_usage(&w->sum.used, &live.used);
	if (member->before_pages != SY_BPF_NOT_YET) /* else it is a copy of the daemon */
		w->sum.rss_pages += live.pages;
	if (live.lives)
		w->sum.processes += live.used.processes;
	if (member->ended) /* it does nothing any more, and its record waits for its reaper */
		return true;
	w->sum.living_ns += live.used.cpu_ns;
	w->sum.runnable += live.runnable;
	return true;
}

/* An ended task gives its slot to the last one, so the list is complete after each step. */
static long read_one(__u32 i, struct walk *w)
{
	struct sy_bpf_listed item;
	__u64 at = w->list->at, last = w->list->count - 1;

	if (at > last || last >= SY_BPF_LIST)
		return 1;
	asm volatile("" : "+r"(at));
	if (at >= SY_BPF_LIST)
		return 1;
	item = w->list->task[at];
	if (read_live(&item, w)) {
		w->list->at = at + 1;
		return 0;
	}
	asm volatile("" : "+r"(last));
	if (last >= SY_BPF_LIST)
		return 1;
	w->list->task[at] = w->list->task[last];
	w->list->count = last;
	return 0;
}

static __always_inline bool start_walk(struct walk *w, __u64 id)
{
	void *list = bpf_map_lookup_elem(&lists, &id);
	__u32 zero = 0;

	w->job = id;
	w->queue = bpf_map_lookup_elem(&queues, &id);
	w->list = list ? bpf_map_lookup_elem(list, &zero) : 0;
	return w->list && w->queue;
}

/* How many living tasks are not in the list after ended tasks have been removed: those that
 * found the queue full, and while the list is full those that wait in the queue. */
static __always_inline __u64 count_unlisted(const struct sy_bpf_job *job,
					    const struct sy_bpf_list *list)
{
	if (list->count < SY_BPF_LIST)
		return job->unlisted;
	return job->tasks > list->count ? job->tasks - list->count : 0;
}

/* Add the ended tasks first: a task that ends meanwhile is missing once and never counted twice.
 * The timer must be off. */
SEC("syscall")
int read_job(struct sy_bpf_answer *answer)
{
	__u64 id = answer->job, begun, done;
	struct sy_bpf_job *job = job_of(id);
	struct walk w = {};

	if (!job || !start_walk(&w, id))
		return 1;
	done = *(volatile __u64 *)&job->ending_done;
	w.sum.used = job->ended;
	bpf_loop(SY_BPF_LIST, add_new, &w, 0);
	w.list->at = 0;
	bpf_loop(SY_BPF_LIST, read_one, &w, 0);
	w.list->at = 0;
	begun = *(volatile __u64 *)&job->ending_begun;
	answer->used = w.sum.used;
	answer->processes = w.sum.processes;
	answer->living_ns = w.sum.living_ns;
	answer->runnable = w.sum.runnable;
	answer->rss_pages = w.sum.rss_pages;
	answer->unlisted = count_unlisted(job, w.list);
	answer->tasks = job->tasks;
	answer->lost = job->lost;
	answer->missed = job->missed;
	answer->late = job->late;
	answer->unread = job->tasks - w.list->count;
	answer->settled = begun == done;
	return 0;
}

/* --- by a timer --- */

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
