/* The kernel's count of one job (plugins/bpf), as its sampler uses it.
 *
 * The parent starts and ends it as root, by steelyard-bpf where nothing is pinned yet. The child
 * names the job's tasks: steps, a cgroup, processes that others bring, or of a job of PBS the
 * daemon that starts them. It reads the sums at each sample.
 *
 * States: `counts` is set while all of the job's processes are counted, as far as is known. It is
 * cleared for good, with the reason in `reason`, when a task may have been missed: then samples
 * come from the cgroup and processes. `named`: a task, a cgroup or a starter is known, so the sums
 * mean something. */
#ifndef STEELYARD_SAMPLER_KERNEL_COUNT_H
#define STEELYARD_SAMPLER_KERNEL_COUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/job.h"
#include "counters/process_table.h"
#include "record/record.h"

struct sy_kernel_count {
	struct sy_bpf bpf;
	struct sy_bpf_answer now;
	bool counts, named;
	bool grouped;		/* processes that are moved into the job's cgroup are the job's */
	pid_t starter;		/* of PBS: the daemon whose tasks are recognized; 0: none is */
	uint64_t unread;	/* sy_bpf_count_unread, when the job began */
	const char *program;	/* steelyard-bpf */
	struct sy_error reason; /* it does not count */
	struct sy_error no_group_reason;
};

/* --- in the parent --- */

/* For a command that root measures: the steelyard-bpf in this program's folder, unless --bpf
 * names another or none. */
void sy_kernel_count_choose_program(struct sy_sampling *sampling);

void sy_kernel_count_begin(struct sy_kernel_count *kernel, const struct sy_sampling *sampling);

/* What this process starts from now on is the job. Should it fail, the command reports more than
 * was counted (sy_kernel_count_confirm). */
void sy_kernel_count_own_children(struct sy_kernel_count *kernel);

/* `more_may_come`: other jobs of this node, soon. */
void sy_kernel_count_end(struct sy_kernel_count *kernel, bool more_may_come);

/* --- in the child --- */

/* Before it gives up its rights: keep the count alive as long as the child lives. */
void sy_kernel_count_hold(struct sy_kernel_count *kernel);

/* As root, before that: whether the child must keep CAP_BPF to read it. */
bool sy_kernel_count_needs_right(const struct sy_kernel_count *kernel);

/* A step's daemon, or another root. `faults`: the page faults it had waited for when it announced
 * itself; -1: not known. `since_ns`: of the job in which it has had itself counted already; 0: it
 * has not. */
void sy_kernel_count_add_root(struct sy_kernel_count *kernel, pid_t pid, int64_t faults,
			      int64_t since_ns);

/* The root's tasks have ended: what it starts from now on is its own. */
void sy_kernel_count_end_root(struct sy_kernel_count *kernel, pid_t pid);

/* The job's cgroup, below `root`, as in /proc/PID/cgroup. Where nothing else names the job's tasks
 * it does, and its processes are the job's. */
void sy_kernel_count_use_cgroup(struct sy_kernel_count *kernel, int root, const char *path,
				const struct sy_sampling *sampling);

/* Nothing of a job of PBS began before its starter, or its cgroup, was known to the kernel. */
void sy_kernel_count_begun_in_time(struct sy_kernel_count *kernel);

/* At the end of a job of PBS: whose begin was never reported to be in time is not counted. */
void sy_kernel_count_check_begin(struct sy_kernel_count *kernel);

/* A process that others than the job's daemon have brought. */
void sy_kernel_count_add_process(struct sy_kernel_count *kernel, pid_t pid);

/* Read into `now`; returns `counts`, or false while nothing is named. */
bool sy_kernel_count_read(struct sy_kernel_count *kernel, enum sy_bpf_patience patience);
struct sy_usage sy_kernel_count_usage(const struct sy_kernel_count *kernel);

/* What steps have reported cannot be more than was counted. Where it is, a root was announced too
 * late, and the count is given up. Returns `counts`. */
bool sy_kernel_count_confirm(struct sy_kernel_count *kernel, const struct sy_usage *reported);

/* For the record: that it counts, or why not. */
void sy_kernel_count_report(const struct sy_kernel_count *kernel, struct sy_status *status);

/* The last sample's CPU time, divided into user and system time as ticks divide it. */
void sy_kernel_count_split(const struct sy_kernel_count *kernel, struct sy_status *status);

/* --- steelyard-bpf, as samplers run it --- */

#define SY_LOADER "steelyard-bpf" /* beside steelyard-node */

#endif
