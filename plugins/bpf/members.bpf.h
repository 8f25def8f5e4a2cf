/* The kernel's maps, and what happens to a task's record in them. */
#ifndef STEELYARD_BPF_MEMBERS_H
#define STEELYARD_BPF_MEMBERS_H

#include "kernel_types.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "bpf/layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SY_BPF_TASKS);
	__type(key, __u64);
	__type(value, struct sy_bpf_member);
} tasks SEC(".maps");

struct one_job {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sy_bpf_job));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, SY_BPF_JOBS);
	__type(key, __u64);
	__array(values, struct one_job);
} jobs SEC(".maps");

/* Tasks that are new, on their way into the list. */
struct one_queue {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SY_BPF_LIST);
	__uint(value_size, sizeof(struct sy_bpf_listed));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, SY_BPF_JOBS);
	__type(key, __u64);
	__array(values, struct one_queue);
} queues SEC(".maps");

struct one_list {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sy_bpf_list));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, SY_BPF_JOBS);
	__type(key, __u64);
	__array(values, struct one_list);
} lists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct sy_bpf_requester);
	__type(value, struct sy_bpf_request);
} requests SEC(".maps");

#define PF_FORKNOEXEC 0x00000040 /* it is still what its parent was */

/* --- what both ends of a life need --- */

static __always_inline struct sy_bpf_job *job_of(__u64 id)
{
	void *map = bpf_map_lookup_elem(&jobs, &id);
	__u32 zero = 0;

	return map ? bpf_map_lookup_elem(map, &zero) : 0;
}

static __always_inline struct sy_bpf_member *member_of(const struct task_struct *task)
{
	__u64 key = (__u64)task;

	return bpf_map_lookup_elem(&tasks, &key);
}

static __always_inline bool is_counted(__u32 kind)
{
	return kind == SY_BPF_MEMBER || kind == SY_BPF_CANDIDATE;
}

/* A task that can still start tasks of the job, or that reads the job's counters. */
static __always_inline bool is_holder(__u32 kind)
{
	return kind == SY_BPF_KEEPER || kind == SY_BPF_STEPD;
}

/* Of a task that the kernel hands over its fields are read as they stand; of one that is known by
 * its address alone through `READ`. */
#define DIRECT(t, field) ((t)->field)

#define READ_USAGE(READ, t, u)                                                                     \
	do {                                                                                       \
		(u)->cpu_ns = READ(t, se.sum_exec_runtime);                                        \
		(u)->user_ns = READ(t, utime);                                                     \
		(u)->system_ns = READ(t, stime);                                                   \
		(u)->rchar = READ(t, ioac.rchar);                                                  \
		(u)->wchar = READ(t, ioac.wchar);                                                  \
		(u)->read_bytes = READ(t, ioac.read_bytes);                                        \
		(u)->write_bytes = READ(t, ioac.write_bytes);                                      \
		(u)->minflt = READ(t, min_flt);                                                    \
		(u)->majflt = READ(t, maj_flt);                                                    \
		(u)->threads = 1;                                                                  \
		(u)->processes = READ(t, group_leader) == (t);                                     \
	} while (0)

static __always_inline void read_usage(const struct task_struct *t, struct sy_bpf_usage *u)
{
	READ_USAGE(DIRECT, t, u);
}

/* `sign`: 1, or -1 as an unsigned number. What was used, not by how many: of a constant 0 that is
 * added clang makes an OR, which Linux 5.12 and later have. */
static __always_inline void add_counters(struct sy_bpf_usage *sum, const struct sy_bpf_usage *u,
					 __u64 sign)
{
	__sync_fetch_and_add(&sum->cpu_ns, sign * u->cpu_ns);
	__sync_fetch_and_add(&sum->user_ns, sign * u->user_ns);
	__sync_fetch_and_add(&sum->system_ns, sign * u->system_ns);
	__sync_fetch_and_add(&sum->rchar, sign * u->rchar);
	__sync_fetch_and_add(&sum->wchar, sign * u->wchar);
	__sync_fetch_and_add(&sum->read_bytes, sign * u->read_bytes);
	__sync_fetch_and_add(&sum->write_bytes, sign * u->write_bytes);
	__sync_fetch_and_add(&sum->minflt, sign * u->minflt);
	__sync_fetch_and_add(&sum->majflt, sign * u->majflt);
}

static __always_inline void add_to(struct sy_bpf_usage *sum, const struct sy_bpf_usage *u)
{
	add_counters(sum, u, 1);
	__sync_fetch_and_add(&sum->threads, u->threads);
	__sync_fetch_and_add(&sum->processes, u->processes);
}

/* From the next reading of its job on, the task's counters are read while it lives. */
static __always_inline void list_task(struct sy_bpf_job *job, __u64 id, __u64 key, __u64 born)
{
	struct sy_bpf_listed item = {.task = key, .born = born};
	void *queue = bpf_map_lookup_elem(&queues, &id);
	struct sy_bpf_member *known;

	if (queue && bpf_map_push_elem(queue, &item, 0) == 0)
		return;
	known = bpf_map_lookup_elem(&tasks, &key);
	if (!known)
		return;
	known->unlisted = 1;
	__sync_fetch_and_add(&job->unlisted, 1);
}

/* A reader that looks at the member meanwhile sees by `born` that it is being removed. */
static __always_inline void remove_member(struct sy_bpf_job *job, __u64 key,
					  struct sy_bpf_member *member)
{
	if (job && is_counted(member->kind))
		__sync_fetch_and_add(&job->tasks, (__u64)-1);
	if (job && member->unlisted)
		__sync_fetch_and_add(&job->unlisted, (__u64)-1);
	if (job && is_holder(member->kind))
		__sync_fetch_and_add(&job->keepers, (__u64)-1);
	*(volatile __u64 *)&member->born = 0;
	bpf_map_delete_elem(&tasks, &key);
}

static __always_inline bool is_same_task(const struct task_struct *task,
					 const struct sy_bpf_member *member)
{
	return BPF_CORE_READ(task, start_time) == member->start_time;
}

/* The task has ended for good. If another task has its address, its own end was missed. */
static __always_inline void finish_member(const struct task_struct *task,
					  struct sy_bpf_member *member, bool same)
{
	struct sy_bpf_job *job = job_of(member->job);

	if (!job || member->kind != SY_BPF_MEMBER) {
		remove_member(job, (__u64)task, member);
		return;
	}
	__sync_fetch_and_add(&job->ending_begun, 1);
	/* A timer that interrupts us must not settle it, too. */
	*(volatile __u64 *)&member->born = 0;
	if (same)
		read_usage(task, &member->counted);
	else
		__sync_fetch_and_add(&job->missed, 1);
	add_to(&job->ended, &member->counted);
	remove_member(job, (__u64)task, member);
	__sync_fetch_and_add(&job->ending_done, 1);
}

/* Of this very task, not of an earlier one whose end was missed. */
static __always_inline struct sy_bpf_member *own_member_of(const struct task_struct *task)
{
	struct sy_bpf_member *member = member_of(task);

	if (!member || is_same_task(task, member))
		return member;
	finish_member(task, member, false);
	return 0;
}

static __always_inline bool enter_job(const struct task_struct *task, __u64 id, __u32 kind)
{
	struct sy_bpf_member member = {.job = id, .kind = kind, .born = bpf_ktime_get_ns()};
	struct sy_bpf_job *job = job_of(id);
	struct sy_bpf_member *before = member_of(task);
	__u64 key = (__u64)task;

	if (before)
		finish_member(task, before, false);
	if (!job)
		return false;
	member.start_time = BPF_CORE_READ(task, start_time);
	member.memory = (__u64)BPF_CORE_READ(task, mm);
	if (BPF_CORE_READ(task, flags) & PF_FORKNOEXEC)
		member.before_pages = SY_BPF_NOT_YET;
	if (bpf_map_update_elem(&tasks, &key, &member, BPF_ANY)) {
		__sync_fetch_and_add(&job->lost, 1);
		return false;
	}
	if (is_holder(kind))
		__sync_fetch_and_add(&job->keepers, 1);
	if (!is_counted(kind))
		return true;
	__sync_fetch_and_add(&job->tasks, 1);
	list_task(job, id, key, member.born);
	return true;
}

/* The program of this task belongs to the job; `before_pages` were resident before it began. */
static __always_inline void set_before_pages(const struct task_struct *task, __u64 before_pages)
{
	struct sy_bpf_member *member = member_of(task);

	if (member)
		member->before_pages = before_pages;
}

/* What a child of such a task is; SY_BPF_KEEPER: not the job's. */
static __always_inline __u32 kind_of_child(__u32 parent)
{
	if (parent == SY_BPF_STEPD || parent == SY_BPF_CANDIDATE)
		return SY_BPF_CANDIDATE;
	if (parent == SY_BPF_ROOT || parent == SY_BPF_MEMBER)
		return SY_BPF_MEMBER;
	return SY_BPF_KEEPER;
}

static __always_inline bool is_root_program(const struct task_struct *task, const char *name,
					    int length)
{
	char comm[16] = {};

	bpf_core_read(comm, sizeof(comm), &task->comm);
	for (int i = 0; i < length; i++)
		if (comm[i] != name[i])
			return false;
	return BPF_CORE_READ(task, cred, euid.val) == 0;
}

/* The programs that Steelyard starts around a step run as root and are no tasks of the step. */
static __always_inline bool is_own_program(const struct task_struct *task)
{
	return is_root_program(task, "steelyard-node", 14) ||
	       is_root_program(task, "steelyard-slurm", 15);
}

#endif
