/* Which tasks are a job's, by their cgroup or by their environment.
 *
 * By cgroup: a process that moves into the job's cgroup, or into one below it, is the job's from
 * then on. One that moves out stays the job's, as its descendants do; one that moves into another
 * job's cgroup is that job's from then on.
 *
 * By environment, for jobs of PBS: one daemon (pbs_mom) starts the tasks of all jobs, and the
 * environment of each task names its job. */
#ifndef STEELYARD_BPF_JOB_MEMBERSHIP_H
#define STEELYARD_BPF_JOB_MEMBERSHIP_H

#include "adopt.bpf.h"

#define PF_EXITING	  0x00000004
#define CLONE_INTO_CGROUP 0x200000000ULL
#define DEPTH		  16 /* of groups within groups */
#define HIERARCHIES	  16
#define FORKS		  4 /* of a starter's fork, before a program is executed */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SY_BPF_GROUPS);
	__type(key, struct sy_bpf_group);
	__type(value, __u64);
} groups SEC(".maps");

/* The job whose group it is, or one above it; 0: none. */
static __always_inline __u64 job_of_group(const struct cgroup *group)
{
	struct sy_bpf_group key = {.hierarchy = BPF_CORE_READ(group, root, hierarchy_id)};
	const char *above;
	const __u64 *job;

	for (int i = 0; i < DEPTH; i++) {
		key.id = BPF_CORE_READ(group, kn, id);
		job = bpf_map_lookup_elem(&groups, &key);
		if (job)
			return *job;
		above = (const char *)BPF_CORE_READ(group, self.parent);
		if (!above)
			return 0;
		group = (const void *)(above - bpf_core_field_offset(group->self));
	}
	return 0;
}

/* The daemon for which a process was forked off that has not executed a program yet; a program
 * that it has executed now was. NULL: none. */
static __always_inline const struct sy_bpf_member *starter_of(const struct task_struct *task)
{
	const struct task_struct *leader = BPF_CORE_READ(task, real_parent, group_leader);

	for (int i = 0; i < FORKS; i++) {
		const struct sy_bpf_member *member = own_member_of(leader);

		if (member)
			return member->kind == SY_BPF_STARTER ? member : 0;
		if (!(BPF_CORE_READ(leader, flags) & PF_FORKNOEXEC))
			return 0;
		leader = BPF_CORE_READ(leader, real_parent, group_leader);
	}
	return 0;
}

/* A daemon, or a fork of one that has not executed a program yet. The program itself is checked
 * when it begins. */
static __always_inline bool is_daemon_task(const struct task_struct *task)
{
	const struct sy_bpf_member *member = own_member_of(task);

	if (member)
		return !is_counted(member->kind);
	return is_own_program(task) || is_root_program(task, "slurmstepd", 10) ||
	       (BPF_CORE_READ(task, flags) & PF_FORKNOEXEC && starter_of(task));
}

/* Take a task out of its job. The usage so far stays with that job. */
static __always_inline void leave_job(const struct task_struct *task, struct sy_bpf_member *member)
{
	struct sy_bpf_job *job = job_of(member->job);
	struct sy_bpf_usage used;

	if (job && member->kind == SY_BPF_MEMBER) {
		READ_USAGE(BPF_CORE_READ, task, &used);
		__sync_fetch_and_add(&job->ending_begun, 1);
		add_to(&job->ended, &used);
		remove_member(job, (__u64)task, member);
		__sync_fetch_and_add(&job->ending_done, 1);
	} else {
		remove_member(job, (__u64)task, member);
	}
}

static __noinline int move_into(const struct task_struct *task, __u64 id)
{
	struct sy_bpf_member *member = own_member_of(task);

	if (BPF_CORE_READ(task, flags) & PF_EXITING || (member && member->job == id))
		return 0;
	if (member)
		leave_job(task, member);
	adopt_from_now(task, id, SY_BPF_MEMBER);
	return 0;
}

/* The next node of a list in the kernel. */
static __always_inline const char *next_node(const char *node)
{
	return (const char *)BPF_CORE_READ((const struct list_head *)node, next);
}

struct moved {
	__u64 job;
	const char *node, *end;
};

static long move_thread(u32 i, struct moved *moved)
{
	const char *node = moved->node;
	const struct task_struct *task = 0;

	if (node == moved->end)
		return 1;
	task = (const void *)(node - bpf_core_field_offset(task->thread_node));
	moved->node = next_node(node);
	(void)move_into(task, moved->job);
	return 0;
}

/* Nobody of the process forks or ends meanwhile. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *group, const char *path, struct task_struct *task, bool all)
{
	struct moved moved = {.job = job_of_group(group)};
	const struct signal_struct *shared = BPF_CORE_READ(task, signal);

	if (!moved.job || is_daemon_task(task))
		return 0;
	if (!all) {
		(void)move_into(task, moved.job);
		return 0;
	}
	moved.end = (const char *)shared + bpf_core_field_offset(shared->thread_head);
	moved.node = next_node(moved.end);
	bpf_loop(SY_BPF_TASKS, move_thread, &moved, 0);
	return 0;
}

struct search {
	const char *node, *end;
	__u64 job;
};

static long find_group(u32 i, struct search *search)
{
	const char *node = search->node;
	const struct cgrp_cset_link *link = 0;

	if (node == search->end)
		return 1;
	link = (const void *)(node - bpf_core_field_offset(link->cgrp_link));
	search->node = next_node(node);
	search->job = job_of_group(BPF_CORE_READ(link, cgrp));
	return search->job != 0;
}

/* Read as a file, for a job that is known by its cgroup alone: adopts the processes that are in
 * it. */
SEC("iter/task")
int adopt_group(struct bpf_iter__task *ctx)
{
	const struct task_struct *task = ctx->task;
	struct sy_bpf_request *request;
	struct requesting requester = {};
	struct search search = {};
	const struct css_set *set;

	request = task ? find_request(&requester) : 0;
	if (!request || own_member_of(task) || is_daemon_task(task))
		return 0;
	set = BPF_CORE_READ(task, cgroups);
	search.end = (const char *)set + bpf_core_field_offset(set->cgrp_links);
	search.node = next_node(search.end);
	bpf_loop(HIERARCHIES, find_group, &search, 0);
	if (search.job != request->job)
		return 0;
	request->found++;
	return move_into(task, request->job);
}

/* --- by environment --- */

#define VARIABLES 8192

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SY_BPF_JOBS);
	__type(key, struct sy_bpf_mark);
	__type(value, struct sy_bpf_marked);
} marks SEC(".maps");

/* Programs started by such daemons of which it is not known what becomes of them: their environment
 * could not be read to its end, or they are root's and have a job's mark (a job starter). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unread SEC(".maps");

struct environment {
	struct sy_bpf_mark mark; /* the variable that is looked at */
	__u64 at, end, job;
	__u32 uid;
	bool within; /* one that is longer than a mark can be */
	bool other;  /* a mark exists, but of another user */
};

static long check_variable(u32 i, struct environment *e)
{
	const struct sy_bpf_marked *found = 0;
	bool within = e->within;
	long length;

	if (e->at >= e->end)
		return 1;
	__builtin_memset(e->mark.text, 0, sizeof(e->mark.text));
	length = bpf_probe_read_user_str(e->mark.text, sizeof(e->mark.text), (const void *)e->at);
	if (length <= 0)
		return 1;
	e->within = length == sizeof(e->mark.text);
	e->at += e->within ? length - 1 : length;
	if (!within && !e->within)
		found = bpf_map_lookup_elem(&marks, &e->mark);
	if (!found)
		return 0;
	if (found->uid == e->uid) /* what a user has written names no other user's job */
		e->job = found->job;
	else
		e->other = true;
	return e->job != 0;
}

static __noinline __u64 job_by_environment(const struct task_struct *task, __u64 starter)
{
	struct environment e = {.mark.starter = starter,
				.uid = BPF_CORE_READ(task, cred, euid.val),
				.at = BPF_CORE_READ(task, mm, env_start),
				.end = BPF_CORE_READ(task, mm, env_end)};
	__u32 zero = 0;
	__u64 *count;

	bpf_loop(VARIABLES, check_variable, &e, 0);
	if (!e.job && (e.at < e.end || (e.other && !e.uid)) &&
	    (count = bpf_map_lookup_elem(&unread, &zero)))
		__sync_fetch_and_add(count, 1);
	return e.job;
}

/* What the daemon did in its name before is not the job's. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_handed, struct task_struct *task)
{
	const struct sy_bpf_member *starter = starter_of(task);
	__u64 job;

	if (!starter || own_member_of(task) || is_own_program(task))
		return 0;
	job = job_by_environment(task, starter->job);
	if (!job)
		return 0;
	(void)move_into(task, job);
	set_before_pages(task, task->signal->maxrss);
	return 0;
}

#endif
