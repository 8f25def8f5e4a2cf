/* What the kernel counts for the sampler, where it can: begun and ended by its parent, as root;
 * told of the job's roots and read by its child. What it cannot, samples of processes tell as ever.
 */
#ifndef STEELYARD_SAMPLER_IN_KERNEL_H
#define STEELYARD_SAMPLER_IN_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "bpf/job.h"
#include "counters/processes_list.h"
#include "record/status.h"

struct sy_in_kernel {
	struct sy_bpf bpf;
	struct sy_bpf_answer now;
	bool counts;	     /* all of the job's processes, as far as is known */
	bool named;	     /* a root was told of */
	struct sy_error why; /* it does not */
};

/* `program`: steelyard-bpf, which is run where nothing is pinned; NULL: do without. `base`: NULL:
 * where it is on every node. */
void sy_in_kernel_begin(struct sy_in_kernel *kernel, const char *program, const char *base);
void sy_in_kernel_end(struct sy_in_kernel *kernel);

/* The child that takes samples, before it gives up its rights. */
void sy_in_kernel_keep(struct sy_in_kernel *kernel);

/* `faults`: what a step's daemon had waited for when it told of itself; -1: not told. */
void sy_in_kernel_root(struct sy_in_kernel *kernel, pid_t pid, int64_t faults);
void sy_in_kernel_done(struct sy_in_kernel *kernel, pid_t pid); /* what it starts now is its own */

/* Read into `now`: whether all is known. */
bool sy_in_kernel_read(struct sy_in_kernel *kernel, bool last);
struct sy_usage sy_in_kernel_usage(const struct sy_in_kernel *kernel);

/* For the record: that it counts, or why not. */
void sy_in_kernel_tell(const struct sy_in_kernel *kernel, struct sy_status *status);

/* At the end: `shown` by processes and their parents cannot be more. Where it is, the kernel was
 * told of a root too late, and no more is asked of it. */
bool sy_in_kernel_holds(struct sy_in_kernel *kernel, const struct sy_usage *shown);

/* The CPU time of the last sample in that of programs and that of the kernel, as ticks divide it.
 */
void sy_in_kernel_split(const struct sy_in_kernel *kernel, struct sy_status *status);

#endif
