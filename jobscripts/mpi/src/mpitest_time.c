/*
 * Timing. In a synchronised window a call begins on all ranks at one moment of rank 0's clock, and
 * took as long as the last rank needed from that moment on. The clocks' differences come from the
 * fastest of some round trips with rank 0, anew for every repetition, as clocks drift. A call for
 * which a rank was late is left out; when too many are, the windows are made longer. (The method is
 * that of T. Worsch et al., "On benchmarking collective MPI operations", EuroPVM/MPI 2002.)
 */
#include <sched.h>
#include <stdlib.h>

#include "mpitest.h"

enum { ROUND_TRIPS = 40, TAG = 9, LEAST_CALLS = 10, TRIES = 12 };

#define MOST_S 1.0 /* of all windows of a repetition: fewer calls then */

struct found mpitest_together(const struct test *test, struct task *t, long count)
{
	double begin, took;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	if (mpitest_takes_part(test, t->world))
		test->run(t, count);
	took = MPI_Wtime() - begin;
	MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return (struct found){took / (double)count, count, 0};
}

/* Rank 0 answers with its time; what its clock says when the other's is at half of the way. */
static double ask_for_time(double *least)
{
	double theirs, sent = MPI_Wtime(), back;

	MPI_Send(&sent, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
	MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	back = MPI_Wtime();
	*least = back - sent;
	return theirs - (sent + back) / 2;
}

static double own_offset(void)
{
	double shortest = 1e9, offset = 0;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		double took, found = ask_for_time(&took);

		if (took < shortest) {
			shortest = took;
			offset = found;
		}
	}
	return offset;
}

static void answer_rank(int rank)
{
	double theirs, mine;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		MPI_Recv(&theirs, 1, MPI_DOUBLE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mine = MPI_Wtime();
		MPI_Send(&mine, 1, MPI_DOUBLE, rank, TAG, MPI_COMM_WORLD);
	}
}

/* What must be added to the own clock to have rank 0's; one rank after the other. */
static double clock_offset(const struct world *w)
{
	if (w->rank != 0)
		return own_offset();
	for (int rank = 1; rank < w->ranks; rank++)
		answer_rank(rank);
	return 0;
}

/* Until rank 0's clock says `moment`; false when that was over before. */
static bool wait_until(double moment, double offset)
{
	if (MPI_Wtime() + offset > moment)
		return false;
	while (MPI_Wtime() + offset < moment)
		sched_yield(); /* more ranks than processors: let the others go on */
	return true;
}

/* Seconds from the begin of each window to the end of the call here; a rank late: a large number.
 */
static void run_windows(const struct test *test, struct task *t, double *took, long calls,
			double window)
{
	const double offset = clock_offset(t->world), late = 1e9;
	double begin = MPI_Wtime() + 2 * window;

	MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (long i = 0; i < calls; i++) {
		const double moment = begin + (double)i * window;
		const bool in_time = wait_until(moment, offset);

		test->run(t, 1);
		took[i] = in_time ? MPI_Wtime() + offset - moment : late;
	}
	MPI_Allreduce(MPI_IN_PLACE, took, (int)calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static struct found mean_of(const double *took, long calls)
{
	struct found found = {0, 0, 0};

	for (long i = 0; i < calls; i++) {
		const bool late = took[i] > 1e8;

		found.late += late;
		found.operations += !late;
		found.seconds += late ? 0 : took[i];
	}
	found.seconds /= found.operations ? (double)found.operations : 1;
	return found;
}

static long calls_in(double window, long count)
{
	const long fit = (long)(MOST_S / window);

	if (fit >= count)
		return count;
	return fit > LEAST_CALLS ? fit : count < LEAST_CALLS ? count : LEAST_CALLS;
}

struct found mpitest_in_windows(const struct test *test, struct task *t, long count)
{
	double *took = calloc((size_t)count, sizeof(*took));
	double window = 2 * mpitest_together(test, t, 3).seconds + 20e-6;
	struct found found = {-1, 0, 0};

	if (!took)
		MPI_Abort(MPI_COMM_WORLD, MPITEST_PROGRAM_ERROR);
	for (int i = 0; i < TRIES && 2 * found.operations <= found.late; i++, window *= 2) {
		const long calls = calls_in(window, count);

		run_windows(test, t, took, calls, window);
		found = mean_of(took, calls);
	}
	free(took);
	if (found.operations == 0)
		found.seconds = -1;
	return found;
}
