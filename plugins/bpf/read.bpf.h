/* What a job has used until now. */
#ifndef STEELYARD_BPF_READ_H
#define STEELYARD_BPF_READ_H

#include "adopt.bpf.h"

static __always_inline void sum_up(struct sy_bpf_usage *sum, const struct sy_bpf_usage *u)
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

struct walk {
	struct sy_bpf_list *list;
	void *queue;
	__u64 job;
	struct sy_bpf_usage sum;
};

static long take_new(__u32 i, struct walk *w)
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

static __always_inline struct sy_bpf_member *find(const struct sy_bpf_listed *item, __u64 job)
{
	__u64 key = item->task;
	struct sy_bpf_member *member = bpf_map_lookup_elem(&tasks, &key);

	if (!member || member->born != item->born || member->job != job || !counts(member->kind))
		return 0;
	return member;
}

/* Its record is there before and after: so what was read in between was this task's. */
static __always_inline bool read_live(const struct sy_bpf_listed *item, struct walk *w)
{
	const struct task_struct *task = (const struct task_struct *)item->task;
	struct sy_bpf_member *member = find(item, w->job);
	struct sy_bpf_usage used;

	if (!member)
		return false;
	if (!is_same(task, member)) {
		settle(task, member, false);
		return false;
	}
	read_usage(task, &used);
	if (!is_same(task, member) || !find(item, w->job))
		return false;
	if (member->ended)
		member->seen = used;
	if (member->kind == SY_BPF_MEMBER)
		sum_up(&w->sum, &used);
	return true;
}

static long read_one(__u32 i, struct walk *w)
{
	struct sy_bpf_listed item;
	__u64 from = i, to = w->list->kept;

	if (from >= w->list->count)
		return 1;
	asm volatile("" : "+r"(from));
	if (from >= SY_BPF_LIST)
		return 1;
	item = w->list->task[from];
	if (!read_live(&item, w))
		return 0;
	asm volatile("" : "+r"(to));
	if (to >= SY_BPF_LIST)
		return 1;
	w->list->task[to] = item;
	w->list->kept = to + 1;
	return 0;
}

static __always_inline void walk_list(struct walk *w)
{
	bpf_loop(SY_BPF_LIST, take_new, w, 0);
	w->list->kept = 0;
	bpf_loop(SY_BPF_LIST, read_one, w, 0);
	w->list->count = w->list->kept;
}

/* Those that have ended first: who ends meanwhile lacks once, and never counts twice. */
SEC("syscall")
int read_job(struct sy_bpf_answer *answer)
{
	__u64 id = answer->job, begun, done;
	void *list = bpf_map_lookup_elem(&lists, &id);
	struct sy_bpf_job *job = job_of(id);
	struct walk w = {.job = id, .queue = bpf_map_lookup_elem(&queues, &id)};
	__u32 zero = 0;

	w.list = list ? bpf_map_lookup_elem(list, &zero) : 0;
	if (!job || !w.list || !w.queue)
		return 1;
	done = *(volatile __u64 *)&job->ending_done;
	w.sum = job->ended;
	walk_list(&w);
	begun = *(volatile __u64 *)&job->ending_begun;
	answer->used = w.sum;
	answer->tasks = job->tasks;
	answer->lost = job->lost;
	answer->unlisted = job->unlisted;
	answer->missed = job->missed;
	answer->late = job->late;
	answer->unread = job->tasks - w.list->count;
	answer->settled = begun == done;
	return 0;
}

/* Where read_job cannot be had: each task's counters as the bytes of a file. */
SEC("iter/task")
int read_tasks(struct bpf_iter__task *ctx)
{
	const struct task_struct *task = ctx->task;
	struct sy_bpf_member *member;
	struct sy_bpf_request *request;
	struct sy_bpf_usage used = {};
	struct asking who = {};

	if (!task)
		return 0;
	member = own_member_of(task);
	if (!member || !counts(member->kind))
		return 0;
	request = find_request(&who);
	if (!request || request->job != member->job)
		return 0;
	if (member->kind == SY_BPF_MEMBER)
		read_usage(task, &used);
	bpf_seq_write(ctx->meta->seq, &used, sizeof(used));
	return 0;
}
#endif
