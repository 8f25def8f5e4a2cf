#include "npb_comm.h"

#include <stdlib.h>
#include <string.h>

#include "npb.h"

static struct npb_call_time times[NPB_CALLS] = {
    [NPB_ALLREDUCE] = {"MPI_Allreduce", 0, 0}, [NPB_ALLGATHER] = {"MPI_Allgather", 0, 0},
    [NPB_ALLTOALL] = {"MPI_Alltoall", 0, 0},   [NPB_ALLTOALLV] = {"MPI_Alltoallv", 0, 0},
    [NPB_EXCHANGE] = {"MPI_Waitall", 0, 0},    [NPB_SHIFT] = {"MPI_Sendrecv", 0, 0},
    [NPB_SEND] = {"MPI_Send", 0, 0},	       [NPB_RECEIVE] = {"MPI_Recv", 0, 0},
};

static bool timed;     /* between npb_timer_start and npb_timer_stop */
static int64_t worked; /* in the timed part, by this rank */

#ifdef NPB_PLANT
bool npb_planted(const char *what)
{
	const char *planted = getenv("NPB_PLANT");

	return planted && strcmp(planted, what) == 0;
}

/* Messages that never come: what was received in the timed part is gone. One alone may do no harm
 * to what goes on until it has converged. */
static void lose(const struct npb_run *run, enum npb_call call, void *data, size_t bytes)
{
	if (timed && run->rank == 0 && npb_planted(times[call].name))
		memset(data, 0, bytes);
}

static size_t bytes_of(MPI_Datatype type)
{
	int bytes;

	MPI_Type_size(type, &bytes);
	return (size_t)bytes;
}
#define LOSE(run, call, data, count, type) lose(run, call, data, (size_t)(count)*bytes_of(type))
#else
#define LOSE(run, call, data, count, type) ((void)0)
#endif

static void done(enum npb_call call, double begin)
{
	times[call].calls++;
	times[call].seconds += MPI_Wtime() - begin;
}

struct npb_call_time npb_call_time(enum npb_call call)
{
	return times[call];
}

void npb_timer_start(struct npb_run *run)
{
	MPI_Barrier(run->comm);
	for (int i = 0; i < NPB_CALLS; i++) {
		times[i].calls = 0;
		times[i].seconds = 0;
	}
	timed = true;
	worked = 0;
	run->seconds = -MPI_Wtime();
}

void npb_timer_stop(struct npb_run *run)
{
	run->seconds += MPI_Wtime();
	timed = false;
	run->compute_s = run->seconds;
	for (int i = 0; i < NPB_CALLS; i++)
		run->compute_s -= times[i].seconds;
}

void npb_worked(int64_t units)
{
	worked += timed ? units : 0;
}

void npb_check_work(struct npb_run *run, int64_t expected)
{
	int64_t sum = worked;

	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, run->comm);
	npb_check(run, "work", (double)sum, (double)expected, 0);
}

void npb_allreduce(struct npb_run *run, void *data, int count, MPI_Datatype type, MPI_Op op)
{
	double begin;

	if (run->ranks == 1)
		return;
	begin = MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, run->comm);
	done(NPB_ALLREDUCE, begin);
	LOSE(run, NPB_ALLREDUCE, data, count, type);
}

static void copy_own(const void *from, void *to, int count, MPI_Datatype type)
{
	int bytes;

	MPI_Type_size(type, &bytes);
	memcpy(to, from, (size_t)count * (size_t)bytes);
}

void npb_allgather(struct npb_run *run, const void *mine, void *all, int count, MPI_Datatype type)
{
	double begin = MPI_Wtime();

	if (run->ranks == 1) {
		copy_own(mine, all, count, type);
		return;
	}
	MPI_Allgather(mine, count, type, all, count, type, run->comm);
	done(NPB_ALLGATHER, begin);
	LOSE(run, NPB_ALLGATHER, all, count * run->ranks, type);
}

void npb_alltoall(struct npb_run *run, const void *send, void *receive, int count,
		  MPI_Datatype type)
{
	double begin = MPI_Wtime();

	if (run->ranks == 1) {
		copy_own(send, receive, count, type);
		return;
	}
	MPI_Alltoall(send, count, type, receive, count, type, run->comm);
	done(NPB_ALLTOALL, begin);
	LOSE(run, NPB_ALLTOALL, receive, count * run->ranks, type);
}

void npb_alltoallv(struct npb_run *run, const void *send, struct npb_blocks out, void *receive,
		   struct npb_blocks in, MPI_Datatype type)
{
	double begin = MPI_Wtime();

	MPI_Alltoallv(send, out.count, out.place, type, receive, in.count, in.place, type,
		      run->comm);
	done(NPB_ALLTOALLV, begin);
	LOSE(run, NPB_ALLTOALLV, receive, in.place[run->ranks - 1] + in.count[run->ranks - 1],
	     type);
}

/* Both ways with one neighbour, or none. */
static void post_pair(const struct npb_run *run, int with, const void *out, int out_tag, void *in,
		      int in_tag, int count, MPI_Datatype type, MPI_Request *requests)
{
	requests[0] = requests[1] = MPI_REQUEST_NULL;
	if (with == MPI_PROC_NULL)
		return;
	MPI_Irecv(in, count, type, with, in_tag, run->comm, &requests[0]);
	MPI_Isend(out, count, type, with, out_tag, run->comm, &requests[1]);
}

/* Four requests; `tag` distinguishes the dimensions. */
static void post(const struct npb_run *run, struct npb_neighbours who, struct npb_edges edges,
		 int count, MPI_Datatype type, int tag, MPI_Request *requests)
{
	const int up = 2 * tag, down = 2 * tag + 1;

	post_pair(run, who.above, edges.to_above, up, edges.from_above, down, count, type,
		  &requests[0]);
	post_pair(run, who.below, edges.to_below, down, edges.from_below, up, count, type,
		  &requests[2]);
}

void npb_exchange_all(struct npb_run *run, int dimensions, const struct npb_neighbours *who,
		      const struct npb_edges *edges, int count, MPI_Datatype type)
{
	enum { EACH = 4, MOST = 3 };
	MPI_Request requests[EACH * MOST];
	const double begin = MPI_Wtime();
	int posted = 0;

	for (int d = 0; d < dimensions; d++) {
		if (run->ranks == 1 && who[d].below == run->rank) {
			copy_own(edges[d].to_above, edges[d].from_below, count, type);
			copy_own(edges[d].to_below, edges[d].from_above, count, type);
			continue;
		}
		post(run, who[d], edges[d], count, type, d, &requests[EACH * posted++]);
	}
	if (posted == 0)
		return;
	MPI_Waitall(EACH * posted, requests, MPI_STATUSES_IGNORE);
	done(NPB_EXCHANGE, begin);
	LOSE(run, NPB_EXCHANGE,
	     who[0].below == MPI_PROC_NULL ? edges[0].from_above : edges[0].from_below, count,
	     type);
}

void npb_exchange(struct npb_run *run, struct npb_neighbours who, struct npb_edges edges, int count,
		  MPI_Datatype type)
{
	npb_exchange_all(run, 1, &who, &edges, count, type);
}

void npb_shift(struct npb_run *run, const void *send, int to, void *receive, int from, int count,
	       MPI_Datatype type)
{
	double begin;

	if (to == run->rank && from == run->rank) {
		copy_own(send, receive, count, type);
		return;
	}
	begin = MPI_Wtime();
	MPI_Sendrecv(send, count, type, to, 0, receive, count, type, from, 0, run->comm,
		     MPI_STATUS_IGNORE);
	done(NPB_SHIFT, begin);
	LOSE(run, NPB_SHIFT, receive, count, type);
}

void npb_swap(struct npb_run *run, int partner, struct npb_message out, struct npb_message in)
{
	double begin = MPI_Wtime();

	MPI_Sendrecv(out.data, out.count, MPI_DOUBLE, partner, 0, in.data, in.count, MPI_DOUBLE,
		     partner, 0, run->comm, MPI_STATUS_IGNORE);
	done(NPB_SHIFT, begin);
	LOSE(run, NPB_SHIFT, in.data, in.count, MPI_DOUBLE);
}

void npb_send(struct npb_run *run, const void *data, int to, int count, MPI_Datatype type)
{
	double begin;

	if (to == MPI_PROC_NULL)
		return;
	begin = MPI_Wtime();
	MPI_Send(data, count, type, to, 0, run->comm);
	done(NPB_SEND, begin);
}

void npb_receive(struct npb_run *run, void *data, int from, int count, MPI_Datatype type)
{
	double begin;

	if (from == MPI_PROC_NULL)
		return;
	begin = MPI_Wtime();
	MPI_Recv(data, count, type, from, 0, run->comm, MPI_STATUS_IGNORE);
	done(NPB_RECEIVE, begin);
	LOSE(run, NPB_RECEIVE, data, count, type);
}
