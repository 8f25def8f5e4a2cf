/* Adoption of tasks that began before their job was reported. */
#ifndef STEELYARD_BPF_ADOPT_H
#define STEELYARD_BPF_ADOPT_H

#include "members.bpf.h"

#define NO_FAULTS ((__u64)-1)

static __always_inline u32 namespace_of(const struct pid *pid, u32 level, int *nr)
{
	struct upid at;
	const char *numbers = (const char *)pid + bpf_core_field_offset(pid->numbers);

	if (!pid || level > 31)
		return 0;
	bpf_probe_read_kernel(&at, sizeof(at), numbers + level * sizeof(at));
	*nr = at.nr;
	return BPF_CORE_READ(at.ns, ns.inum);
}

struct requesting {
	const struct task_struct *leader;
	struct sy_bpf_requester name;
	u32 level;
};

static __always_inline struct sy_bpf_request *find_request(struct requesting *requester)
{
	const struct task_struct *self = (void *)bpf_get_current_task();
	const struct task_struct *leader = BPF_CORE_READ(self, group_leader);
	const struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	int nr = 0;

	requester->leader = leader;
	requester->level = BPF_CORE_READ(pid, level);
	requester->name.namespace = namespace_of(pid, requester->level, &nr);
	requester->name.pid = (u32)nr;
	return bpf_map_lookup_elem(&requests, &requester->name);
}

static __always_inline bool is_requested(const struct requesting *requester, u32 pid,
					 const struct task_struct *leader)
{
	const struct pid *of = BPF_CORE_READ(leader, thread_pid);
	int nr = 0;

	if (!pid)
		return leader == requester->leader;
	if (BPF_CORE_READ(of, level) < requester->level)
		return false;
	return namespace_of(of, requester->level, &nr) == requester->name.namespace &&
	       (u32)nr == pid;
}

/* A task's parent, or the process that it is a thread of. */
static __always_inline struct sy_bpf_member *parent_member(const struct task_struct *task)
{
	const struct task_struct *parent = BPF_CORE_READ(task, real_parent);
	struct sy_bpf_member *found = own_member_of(parent);

	return found ? found : own_member_of(BPF_CORE_READ(parent, group_leader));
}

/* The kind that a task gets from its leader or its parent. SY_BPF_KEEPER: none. */
static __always_inline u32 inherited_kind(const struct task_struct *task,
					  const struct task_struct *leader, __u64 id)
{
	const struct sy_bpf_member *from = own_member_of(leader);
	u32 kind;

	if (from)
		return from->job == id ? from->kind : SY_BPF_KEEPER;
	from = parent_member(task);
	if (!from || from->job != id)
		return SY_BPF_KEEPER;
	kind = kind_of_child(from->kind);
	if (kind != SY_BPF_CANDIDATE || BPF_CORE_READ(task, flags) & PF_FORKNOEXEC)
		return kind;
	return is_own_program(task) ? SY_BPF_KEEPER : SY_BPF_MEMBER;
}

/* A program that a step's daemon has started: the job's, however old. */
static __always_inline bool is_of_step(const struct task_struct *task)
{
	const struct sy_bpf_member *parent = parent_member(task);

	return parent && parent->kind == SY_BPF_STEPD;
}

/* Change a member's kind: a step's daemon that was adopted as a process of the job, or a root
 * that has sent its last report. */
static __always_inline void change_kind(const struct task_struct *task,
					struct sy_bpf_member *member, u32 kind)
{
	struct sy_bpf_job *job = job_of(member->job);

	if (job && is_counted(member->kind) && !is_counted(kind))
		__sync_fetch_and_add(&job->tasks, (__u64)-1);
	if (job && is_holder(member->kind) != is_holder(kind))
		__sync_fetch_and_add(&job->keepers, is_holder(kind) ? 1 : (__u64)-1);
	member->kind = kind;
}

/* Adopt a task without the usage that it has so far: that is not the job's. */
static __always_inline void adopt_from_now(const struct task_struct *task, __u64 id, u32 kind)
{
	struct sy_bpf_job *job = job_of(id);
	struct sy_bpf_usage used;

	if (!enter_job(task, id, kind) || !job || !is_counted(kind))
		return;
	READ_USAGE(BPF_CORE_READ, task, &used);
	__sync_fetch_and_add(&job->ending_begun, 1);
	add_counters(&job->ended, &used, (__u64)-1);
	__sync_fetch_and_add(&job->ending_done, 1);
}

/* Adopt a task. Usage from before the job's begin is left out. */
static __always_inline void adopt_task(const struct task_struct *task, __u64 id, u32 kind)
{
	const struct sy_bpf_job *job = job_of(id);

	if (job && BPF_CORE_READ(task, start_time) >= job->since_ns)
		enter_job(task, id, kind);
	else
		adopt_from_now(task, id, kind);
}

static __always_inline void note_late(__u64 id)
{
	struct sy_bpf_job *job = job_of(id);

	if (job)
		__sync_fetch_and_add(&job->late, 1);
}

/* Note that a program of the job began before its root was reported, or began, ended and was
 * reaped before that. Further such programs may be unknown. */
static __always_inline void note_if_late(const struct task_struct *task, __u64 id, __u64 faults)
{
	const struct sy_bpf_job *job = job_of(id);

	if (faults != NO_FAULTS ? BPF_CORE_READ(task, signal, cmin_flt) != faults
				: job && BPF_CORE_READ(task, start_time) >= job->since_ns)
		note_late(id);
}

/* A starter belongs to no job: each of its children carries a mark that names the job. */
static __always_inline void adopt_starter(const struct task_struct *task,
					  const struct sy_bpf_member *known,
					  struct sy_bpf_request *request)
{
	struct sy_bpf_member member = {.job = request->job,
				       .kind = SY_BPF_STARTER,
				       .start_time = BPF_CORE_READ(task, start_time)};
	__u64 key = (__u64)task;

	if (task != BPF_CORE_READ(task, group_leader))
		return;
	request->found++;
	if (known && known->kind == SY_BPF_STARTER)
		request->job = known->job;
	else if (known || bpf_map_update_elem(&tasks, &key, &member, BPF_ANY))
		request->other_jobs++;
}

/* Adopt the requested process. A task belongs to one job. */
static __always_inline void adopt_requested(const struct task_struct *task,
					    struct sy_bpf_member *known,
					    struct sy_bpf_request *request)
{
	if (request->kind == SY_BPF_STARTER) {
		adopt_starter(task, known, request);
		return;
	}
	request->found++;
	if (known && known->job != request->job)
		request->other_jobs++;
	else if (known)
		change_kind(task, known, request->kind);
	else
		adopt_task(task, request->job, request->kind);
	request->added += !known; /* children whose ids are lower are adopted in the next pass */
	if (!known && request->kind == SY_BPF_STEPD && request->faults != NO_FAULTS &&
	    task == BPF_CORE_READ(task, group_leader))
		note_if_late(task, request->job, request->faults);
}

/* Adopt the calling process without a scan of other tasks. Its later children are followed. */
SEC("syscall")
int join(struct sy_bpf_request *request)
{
	const struct task_struct *self = (void *)bpf_get_current_task();
	const struct task_struct *leader = BPF_CORE_READ(self, group_leader);

	adopt_requested(leader, own_member_of(leader), request);
	if (self != leader)
		adopt_requested(self, own_member_of(self), request);
	return 0;
}

/* Read as a file: the reader has made a request, and the program visits every task of the
 * reader's process id namespace. Children may come before their parents, so the reader repeats it
 * until no task was added. */
SEC("iter/task")
int adopt(struct bpf_iter__task *ctx)
{
	const struct task_struct *task = ctx->task, *leader, *own_leader;
	struct sy_bpf_member *known;
	struct sy_bpf_request *request;
	struct requesting requester = {};
	u32 kind;

	if (!task)
		return 0;
	request = find_request(&requester);
	if (!request)
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	known = own_member_of(task);
	if (is_requested(&requester, request->pid, leader)) {
		adopt_requested(task, known, request);
		return 0;
	}
	own_leader = requester.leader;
	if (known || !request->pid || request->kind >= SY_BPF_KEEPER || leader == own_leader ||
	    leader == BPF_CORE_READ(own_leader, real_parent))
		return 0;
	kind = inherited_kind(task, leader, request->job);
	if (kind == SY_BPF_KEEPER)
		return 0;
	adopt_task(task, request->job, kind);
	if (kind == SY_BPF_MEMBER && is_of_step(task))
		note_late(request->job);
	else if (kind == SY_BPF_MEMBER)
		note_if_late(task, request->job, NO_FAULTS);
	request->added++;
	return 0;
}

#endif
