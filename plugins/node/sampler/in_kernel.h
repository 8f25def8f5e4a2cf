/* What the kernel counts for the sampler, where it can: begun and ended by its parent, as root;
 * told of the job's roots and read by its child. What it cannot, samples of processes tell as ever.
 */
#ifndef STEELYARD_SAMPLER_IN_KERNEL_H
#define STEELYARD_SAMPLER_IN_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "bpf/job.h"
#include "counters/processes_list.h"
#include "record/record.h"

struct sy_in_kernel {
	struct sy_bpf bpf;
	struct sy_bpf_answer now;
	bool counts;	 /* all of the job's processes, as far as is known */
	bool named;	 /* a root was told of, or a cgroup that is the job's */
	bool grouped;	 /* who is moved into its cgroup is the job's */
	pid_t starter;	 /* of PBS: tasks that it starts from now on are known; 0: they are not */
	uint64_t unread; /* sy_bpf_unread, when the job began */
	const char *program; /* steelyard-bpf */
	struct sy_error why; /* it does not */
	struct sy_error why_no_group;
};

/* Of a command that root measures, unless it is not wanted: by the steelyard-bpf beside us. */
void sy_in_kernel_choose(struct sy_sampling *sampling);

/* As it says: by steelyard-bpf, which is run where nothing is pinned, or not at all. */
void sy_in_kernel_begin(struct sy_in_kernel *kernel, const struct sy_sampling *sampling);
/* `more_may_come`: other jobs of this node, soon. */
void sy_in_kernel_end(struct sy_in_kernel *kernel, bool more_may_come);

/* What this process starts from now on is the command's job; and the child, who hears nothing of
 * it: that it will be so. */
void sy_in_kernel_own(struct sy_in_kernel *kernel, const struct sy_sampling *sampling);
void sy_in_kernel_own_parent(struct sy_in_kernel *kernel);

/* The child that takes samples, before it gives up its rights. */
void sy_in_kernel_keep(struct sy_in_kernel *kernel);

/* As root, before that: whether it must keep CAP_BPF to go on with this. */
bool sy_in_kernel_wants_right(const struct sy_in_kernel *kernel);

/* `faults`: what a step's daemon had waited for when it told of itself; -1: not told. `since_ns`:
 * of the job in which it counts already, by itself; 0: it does not. */
void sy_in_kernel_root(struct sy_in_kernel *kernel, pid_t pid, int64_t faults, int64_t since_ns);
void sy_in_kernel_done(struct sy_in_kernel *kernel, pid_t pid); /* what it starts now is its own */

/* A cgroup, below `root`, as in /proc/PID/cgroup. Where nothing else names the job's tasks, it
 * does, and who is in there now is one. */
void sy_in_kernel_group(struct sy_in_kernel *kernel, int root, const char *path,
			const struct sy_sampling *sampling);

/* Nothing of a job of PBS has begun before its starter, or its cgroup, was known to the kernel. */
void sy_in_kernel_in_time(struct sy_in_kernel *kernel);

/* Brought by others than its daemon, and from now on the job's. */
void sy_in_kernel_attach(struct sy_in_kernel *kernel, pid_t pid);

/* Read into `now`: whether all is known. */
bool sy_in_kernel_read(struct sy_in_kernel *kernel, bool last);
struct sy_usage sy_in_kernel_usage(const struct sy_in_kernel *kernel);

/* For the record: that it counts, or why not. */
void sy_in_kernel_tell(const struct sy_in_kernel *kernel, struct sy_status *status);

/* What steps have reported cannot be more than the kernel has counted. Where it is, the kernel was
 * told of a root too late, and its count is not used from then on. */
bool sy_in_kernel_holds(struct sy_in_kernel *kernel, const struct sy_usage *reported);

/* The CPU time of the last sample in that of programs and that of the kernel, as ticks divide it.
 */
void sy_in_kernel_split(const struct sy_in_kernel *kernel, struct sy_status *status);

#endif
