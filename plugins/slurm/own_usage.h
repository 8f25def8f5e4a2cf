/* What this process and its reaped children have used: after a step's last task, the whole step,
 * processes too short to be sampled included. */
#ifndef STEELYARD_SLURM_OWN_USAGE_H
#define STEELYARD_SLURM_OWN_USAGE_H

#include <stdbool.h>
#include <sys/resource.h>

struct sy_own_usage {
	long long cpu_us;	 /* of the children alone */
	long long largest_bytes; /* resident set of the largest child; 0: not known */
	long long faults; /* page faults of the children: more when another one was waited for */
	long long waited_faults; /* of all children, as /proc tells them */
	long long io[4]; /* rchar, wchar, read_bytes, write_bytes: of the children, and of our
			  * threads that had ended before they were ever looked at */
	long long unsure_bytes; /* of rchar and wchar: threads of ours that never rested */
};

/* A child of our own making was waited for (wait4(2)): what it used is not the job's. */
void sy_own_usage_leave_out(const struct rusage *child);

/* Our own threads are told apart by the last call before they end: call it also when tasks end.
 * False when the kernel does not tell. */
bool sy_own_usage_read(struct sy_own_usage *usage);

#endif
