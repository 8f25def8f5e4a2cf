/* The I/O counters of a process hold those of its threads, of its threads that have ended, and of
 * the children it has waited for. What the children of a step's daemon did is what is left when
 * its threads' own is taken off: slurmstepd's reads all of /proc each time it polls for the
 * accounting, some 100 kB. */
#ifndef STEELYARD_COUNTERS_THREAD_IO_H
#define STEELYARD_COUNTERS_THREAD_IO_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/parse.h"

#define SY_MAX_THREADS 32 /* slurmstepd has some five; more are counted as children */

/* The threads of one process as they were last looked at; all zero to begin with. */
struct sy_thread_io {
	bool used; /* for those who keep several */
	struct {
		pid_t id; /* 0: the place is free */
		bool alive;
		struct sy_io io;
	} thread[SY_MAX_THREADS];
	struct sy_io ended; /* of threads that are gone */
	/* What the calling thread has read since the counters of the process were, when that is its
	 * own: the file of those counters, and what this looking costs. */
	int64_t just_read;
};

/* Take off `io`, the counters of process `pid` read a moment ago, what its own threads did. `proc`
 * is a descriptor of /proc. 0; 1 when a thread, or the process, has ended since the last look: how
 * much more it had done is in `io`, and not to be told from the children's; -1 when a file cannot
 * be read. */
int sy_thread_io_take_off(struct sy_thread_io *threads, int proc, pid_t pid, struct sy_io *io);

#endif
