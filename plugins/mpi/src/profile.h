/* libsteelyard-mpiprof, the profiler of MPI programs: what one rank measures, and how the ranks'
 * figures become one file (docs/mpi-profile.md).
 *
 * The library is preloaded, so that the program's MPI_Send is ours, which calls PMPI_Send.
 * wrappers.c (C) and fortran.c define the calls of calls.h, sent_bytes.h how many bytes each
 * hands over. A rank measures from the call of MPI_Init to the call of MPI_Finalize; there rank 0
 * gathers all profiles, and profile_file.c writes the file.
 *
 * It promises: the file is complete or absent, and calls that MPI makes itself belong to the call
 * that the program made. With MPI_THREAD_MULTIPLE communication is the time with at least one
 * thread in a call. Loaded into a program of another MPI it ends the program with 3, since every
 * call would be a wrong one. A program without MPI_Finalize leaves no profile.
 *
 * It does not separate waiting from sending, and sees no statically linked program. Files, types,
 * groups and attributes count as computation. */
#ifndef SY_MPIPROF_PROFILE_H
#define SY_MPIPROF_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "calls.h"

/* Sizes of messages: 0 bytes, 1, 2 to 3, 4 to 7, … */
enum { SY_SIZES = 65, SY_NODE_LENGTH = 64 };

struct sy_count {
	uint64_t calls;
	uint64_t messages;  /* calls in which this rank handed something over */
	uint64_t uncounted; /* calls whose size is not known */
	uint64_t bytes;
	uint64_t ticks;
};

/* Sent between ranks as bytes: no pointers. */
struct sy_profile {
	char node[SY_NODE_LENGTH];
	double init_s;	/* in MPI_Init */
	double total_s; /* from the call of MPI_Init to the call of MPI_Finalize */
	double seconds_per_tick;
	bool many_threads;     /* several may be in MPI at once: MPI_THREAD_MULTIPLE */
	uint64_t inside_ticks; /* then: with at least one thread in a call */
	struct sy_count count[SY_CALLS];
	uint64_t sizes[SY_SIZES];
};

/* One call from outside of MPI; calls that MPI makes itself are part of it. */
struct sy_timing {
	bool counts;
	uint64_t start;
};

struct sy_timing sy_begin(void);
/* `bytes`: or SY_NO_MESSAGE, SY_NOT_KEPT. */
void sy_end(struct sy_timing timing, enum sy_call call, long bytes);

/* Around MPI_Init, with its result; before MPI_Finalize. */
void sy_start_init(void);
void sy_end_init(int code);
void sy_report(void);

/* The file, from the profiles of all ranks. `clock`: where ticks come from. */
int sy_write(const char *path, const struct sy_profile *rank, int ranks, const char *clock,
	     const char *mpi);

#endif
