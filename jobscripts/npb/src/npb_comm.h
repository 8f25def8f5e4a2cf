/*
 * The MPI calls of the kernels, each timed under its own name, so that a run can report how long
 * it computed and how long it waited. All of them work on run->comm. With one rank they cost next
 * to nothing and never call MPI.
 */
#ifndef NPB_COMM_H
#define NPB_COMM_H

#include "npb.h"

enum npb_call {
	NPB_ALLREDUCE,
	NPB_ALLGATHER,
	NPB_ALLTOALL,
	NPB_ALLTOALLV,
	NPB_EXCHANGE,
	NPB_SHIFT,
	NPB_SEND,
	NPB_RECEIVE,
	NPB_CALLS
};

/* Of this rank, since npb_timer_start. */
struct npb_call_time {
	const char *name; /* "MPI_Allreduce" */
	int64_t calls;
	double seconds;
};

/* All ranks together: zero the counters, begin the timed part. */
void npb_timer_start(struct npb_run *run);
/* End of the timed part; sets run->seconds and run->compute_s. */
void npb_timer_stop(struct npb_run *run);
struct npb_call_time npb_call_time(enum npb_call call);

/*
 * Work done, in the kernel's own unit, said where it is done: a second check beside the official
 * figures, which CG reaches with fewer steps than it must do, too. Only that of the timed part
 * counts.
 */
void npb_worked(int64_t units);
/* Over all ranks, outside of the timed part, as the check "work": exactly so much. */
void npb_check_work(struct npb_run *run, int64_t expected);

/* In place, over all ranks; op is MPI_SUM, MPI_MAX, MPI_MIN, MPI_MAXLOC ... */
void npb_allreduce(struct npb_run *run, void *data, int count, MPI_Datatype type, MPI_Op op);
/* Every rank gives `count` elements, all get ranks * count, in the order of the ranks. */
void npb_allgather(struct npb_run *run, const void *mine, void *all, int count, MPI_Datatype type);
/* Block q of `send` goes to rank q; `count` elements each. */
void npb_alltoall(struct npb_run *run, const void *send, void *receive, int count,
		  MPI_Datatype type);
/* The blocks of npb_alltoallv: counts and places by rank, in elements. */
struct npb_blocks {
	int *count, *place;
};
void npb_alltoallv(struct npb_run *run, const void *send, struct npb_blocks out, void *receive,
		   struct npb_blocks in, MPI_Datatype type);
/*
 * With both neighbours of a dimension at once: `count` elements to each and from each. Both may be
 * the same rank, or this rank itself.
 */
struct npb_neighbours {
	int below, above;
};
struct npb_edges {
	const void *to_below, *to_above;
	void *from_below, *from_above;
};
void npb_exchange(struct npb_run *run, struct npb_neighbours who, struct npb_edges edges, int count,
		  MPI_Datatype type);
/* The same along `dimensions` (3 at most) at once. */
void npb_exchange_all(struct npb_run *run, int dimensions, const struct npb_neighbours *who,
		      const struct npb_edges *edges, int count, MPI_Datatype type);
/* Sends to one rank while receiving as much from another; both may be this rank itself. */
void npb_shift(struct npb_run *run, const void *send, int to, void *receive, int from, int count,
	       MPI_Datatype type);
/* With one partner; with itself, too, a rank has a message, as NASA's programs send it. */
struct npb_message {
	double *data;
	int count;
};
void npb_swap(struct npb_run *run, int partner, struct npb_message out, struct npb_message in);
/* One message, for work that goes from rank to rank; MPI_PROC_NULL: nothing to do. */
void npb_send(struct npb_run *run, const void *data, int to, int count, MPI_Datatype type);
void npb_receive(struct npb_run *run, void *data, int from, int count, MPI_Datatype type);

/*
 * Planted errors, to test the verification: only a build with -DNPB_PLANT knows them, and only
 * when the variable NPB_PLANT names one: "coefficient" (the kernel computes with a wrong one),
 * "steps" (it does four fifths of its steps), or an MPI call by its name (what rank 0 gets by it in
 * the timed part is lost).
 */
#ifdef NPB_PLANT
bool npb_planted(const char *what);
#else
NPB_INLINE bool npb_planted(const char *what)
{
	(void)what;
	return false;
}
#endif

/* How many steps to do of `n`: all of them, unless the error is planted. */
NPB_INLINE int npb_steps(int n)
{
	return npb_planted("steps") ? n * 4 / 5 : n;
}

/*
 * What a run prints: a heading, and the closing block of NPB, which programs read; and the same
 * with more figures as JSON.
 */

/* Of all ranks; on rank 0 after npb_gather_times. */
struct npb_times {
	double seconds; /* of the slowest rank */
	double compute_mean_s, compute_max_s;
	struct {
		const char *name;
		int64_t calls; /* of rank 0 */
		double mean_s, max_s;
	} call[NPB_CALLS];
};

void npb_print_heading(const struct npb_kernel *kernel, const struct npb_run *run);
void npb_gather_times(const struct npb_run *run, struct npb_times *times);
bool npb_verified(const struct npb_run *run);
void npb_print_closing(const struct npb_kernel *kernel, const struct npb_run *run,
		       const struct npb_times *times);
/* Whole or not at all; false, with errno, when it could not be written. */
bool npb_write_json(const char *path, const struct npb_kernel *kernel, const struct npb_run *run,
		    const struct npb_times *times);

#endif
