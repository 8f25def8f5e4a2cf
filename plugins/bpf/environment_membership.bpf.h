/* Membership by environment, for jobs of PBS: one daemon (pbs_mom) starts the tasks of all jobs,
 * and the environment of each task names its job. */
#ifndef STEELYARD_BPF_ENVIRONMENT_MEMBERSHIP_H
#define STEELYARD_BPF_ENVIRONMENT_MEMBERSHIP_H

#include "cgroup_membership.bpf.h"

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
