// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Counts in the kernel what every task of a job has used, to its last moment: threads, orphans,
 * children that no process waits for, and those that no sample sees.
 *
 * A task is
 * - a member, because its parent is one (on_new), because it was there when its job began
 *   (adopt.bpf.h), by its cgroup or by its environment (job_membership.bpf.h). It has a record
 *   in `tasks`, by its address in the kernel, and a place in its job's list;
 * - ending (on_exit): what it has used so far is in its record;
 * - gone (on_free, sched_process_free): its counters do not change any more, and are added to its
 *   job's `ended`. That is the last event of its life, after its last switch and after it was
 *   waited for; until then its address is its own. The job's usage is `ended` and that of its
 *   living members (job_reading.bpf.h).
 *
 * Where a kernel does not run us at the last event, what the task had used when it began to end is
 * taken instead, and counted (`missed`). Nothing here waits, and no map grows: a task for which
 * there is no room is counted as `lost`, or as `unlisted` where only its end is read.
 *
 * Not here: which processes a job has (plugins/node/bpf/job.h), and a job's tasks on other nodes.
 */
#include "members.bpf.h"
#include "adopt.bpf.h"
#include "job_membership.bpf.h"
#include "job_reading.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define CLONE_THREAD 0x00010000

/* What a child of its begins as is the job's. */
static __always_inline bool is_program_of_job(const struct sy_bpf_member *parent)
{
	return parent->kind == SY_BPF_MEMBER && parent->before_pages != SY_BPF_NOT_YET;
}

/* Runs in the task that forks. Workers of io_uring cause no fork event and are found here, too. A
 * process that joined by its own request may have older threads (join). A child may begin in
 * another job's cgroup (clone3). */
SEC("tp_btf/task_newtask")
int BPF_PROG(on_new, struct task_struct *task, u64 clone_flags)
{
	const struct task_struct *self = (void *)bpf_get_current_task();
	const struct task_struct *leader = BPF_CORE_READ(self, group_leader);
	const struct sy_bpf_member *parent = own_member_of(self);
	__u64 job = clone_flags & CLONE_INTO_CGROUP
			? job_of_group(BPF_CORE_READ(task, cgroups, dfl_cgrp))
			: 0;
	__u32 kind;

	if (!parent && leader != self)
		parent = own_member_of(leader);
	if (own_member_of(task)) /* it was moved into the job's cgroup before it has run */
		return 0;
	if (job && (!parent || parent->job != job)) {
		enter_job(task, job, SY_BPF_MEMBER);
		return 0;
	}
	if (!parent)
		return 0;
	if (clone_flags & CLONE_THREAD) {
		enter_job(task, parent->job, parent->kind);
		return 0;
	}
	kind = kind_of_child(parent->kind);
	if (kind != SY_BPF_KEEPER && enter_job(task, parent->job, kind) &&
	    is_program_of_job(parent))
		set_before_pages(task, 0);
	return 0;
}

/* As in a container: what it sends over a veth has lost the mark of the job's traffic. */
static __always_inline void note_network(const struct task_struct *task,
					 const struct sy_bpf_member *member)
{
	struct sy_bpf_job *job = job_of(member->job);

	if (job && job->network && BPF_CORE_READ(task, nsproxy, net_ns, ns.inum) != job->network)
		__sync_fetch_and_add(&job->other_networks, 1);
}

/* A thread that executes a program takes the place of its process: its number, and its start. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	struct sy_bpf_member *member = member_of(task);

	if (!member)
		return 0;
	if (old_pid != task->pid)
		member->start_time = task->start_time;
	member->memory = (__u64)task->mm;
	if (member->before_pages == SY_BPF_NOT_YET)
		member->before_pages = task->signal->maxrss;
	member = own_member_of(task);
	if (!member || !is_counted(member->kind))
		return 0;
	if (member->kind == SY_BPF_CANDIDATE && is_own_program(task)) {
		remove_member(job_of(member->job), (__u64)task, member);
		return 0;
	}
	member->kind = SY_BPF_MEMBER;
	note_network(task, member);
	return 0;
}

/* In do_exit the last thread of a process has reported the process' largest resident set, and no
 * other task runs on this CPU here. The value survives exec: where it has not grown since, it is
 * that of the daemon that forked the process (Torque's pbs_mom locks its memory, 109 MB), and
 * only samples show the process' own. A fork of root's that ends without a program is a copy of
 * the daemon. */
static __always_inline void note_largest(const struct task_struct *task,
					 const struct sy_bpf_member *member)
{
	__u64 cpu = bpf_get_smp_processor_id();
	struct sy_bpf_job *job = job_of(member->job);
	__u64 pages = task->signal->maxrss, before = member->before_pages;

	if (!job || member->kind != SY_BPF_MEMBER)
		return;
	if (before == SY_BPF_NOT_YET ? BPF_CORE_READ(task, cred, euid.val) == 0 : pages <= before)
		return;
	asm volatile("" : "+r"(cpu)); /* Linux 6.1 follows the limit of one register alone */
	if (cpu < SY_BPF_CPUS && pages > job->largest_pages[cpu])
		job->largest_pages[cpu] = pages;
}

/* A thread of its executes a program and becomes the process, which is counted for that one. Where
 * this is not known and the end for good is not shown either there is one process too many. */
static __always_inline bool is_replaced(const struct task_struct *task)
{
	const struct signal_struct *group = task->signal;

	return bpf_core_field_exists(group->group_exec_task) && group->group_exec_task &&
	       group->group_exec_task != task;
}

/* In the task itself: what it has used but for its last moments. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct sy_bpf_member *member = own_member_of(task);

	if (!member)
		return 0;
	if (is_holder(member->kind)) {
		remove_member(job_of(member->job), (__u64)task, member);
		return 0;
	}
	note_largest(task, member);
	read_usage(task, &member->counted);
	if (is_replaced(task))
		member->counted.processes = 0;
	member->ended = 1;
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	struct sy_bpf_member *member = member_of(task);

	if (member)
		finish_member(task, member, is_same_task(task, member));
	return 0;
}
