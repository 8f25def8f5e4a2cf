// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Counts in the kernel what every task of a job has used, to its last moment: threads, orphans,
 * children that nobody waits for, and those of which no sample knows.
 *
 * A task is the job's because the task that forked it is. It is known by its address in the kernel,
 * which is its own until sched_process_free: the last event of its life, after its last switch and
 * after it was waited for, when its counters do not change any more. That event comes whenever the
 * kernel has time, on behalf of anybody: where a kernel does not run us then, what the task had
 * used when it began to end is taken instead, and told (`missed`).
 *
 * Nothing here waits, and no map grows: where there is no room it is counted and told. */
#include "members.bpf.h"
#include "adopt.bpf.h"
#include "read.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define CLONE_THREAD 0x00010000

/* In the task that forks; also for the workers of io_uring, which no fork event tells. */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_new, struct task_struct *task, u64 clone_flags)
{
	const struct sy_bpf_member *parent = own_member_of((void *)bpf_get_current_task());
	__u32 kind;

	if (!parent)
		return 0;
	if (clone_flags & CLONE_THREAD) {
		enter(task, parent->job, parent->kind);
		return 0;
	}
	kind = kind_of_child(parent->kind);
	if (kind != SY_BPF_KEEPER)
		enter(task, parent->job, kind);
	return 0;
}

/* A thread that executes a program takes the place of its process: its number, and its start. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	struct sy_bpf_member *member = member_of(task);

	if (!member)
		return 0;
	if (old_pid != BPF_CORE_READ(task, pid))
		member->start_time = BPF_CORE_READ(task, start_time);
	member = own_member_of(task);
	if (!member || member->kind != SY_BPF_CANDIDATE)
		return 0;
	if (is_our_own(task))
		forget(job_of(member->job), (__u64)task, member);
	else
		member->kind = SY_BPF_MEMBER;
	return 0;
}

/* In the task itself: what it has used but for its last moments. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct sy_bpf_member *member = own_member_of(task);

	if (!member)
		return 0;
	if (member->kind == SY_BPF_KEEPER) {
		forget(job_of(member->job), (__u64)task, member);
		return 0;
	}
	read_usage(task, &member->seen);
	member->ended = 1;
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	struct sy_bpf_member *member = member_of(task);

	if (member)
		settle(task, member, is_same(task, member));
	return 0;
}
