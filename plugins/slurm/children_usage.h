/* What the children of this process have used: after a step's last task the whole step, processes
 * too short for a sample included.
 *
 * The kernel adds the counters of a child to its parent's when the parent waits for it. The bytes
 * of the parent's own threads are in the same counters: slurmstepd reads all of /proc, some 100 kB,
 * each time it polls for the accounting. They are subtracted thread by thread, while all of them
 * live: at the end of the last task, before the polling thread ends. */
#ifndef STEELYARD_SLURM_CHILDREN_USAGE_H
#define STEELYARD_SLURM_CHILDREN_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct sy_own_usage {
	long long cpu_us;
	long long largest_bytes; /* resident set of the largest child; 0: not known */
	bool io_known;		 /* false: a thread of ours was reading or writing meanwhile */
	int64_t io[4];		 /* rchar, wchar, read_bytes, write_bytes */
};

/* False when the kernel does not report it. */
bool sy_own_usage_read(struct sy_own_usage *usage);

#endif
