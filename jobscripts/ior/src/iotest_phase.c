/* Timing of a phase, and the stonewall. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "iotest.h"

_Noreturn void iotest_stop(const struct test *t, const char *what, const char *path)
{
	fprintf(stderr, "steelyard-iotest: rank %d: %s: %s: %s\n", t->rank, path, what,
		errno ? strerror(errno) : "not what was written");
	MPI_Abort(MPI_COMM_WORLD, IOTEST_FAILED);
	for (;;)
		;
}

static double begin_together(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Wtime();
}

/* From the begin of the first rank to the end of the last: whoever began first waits longest at the
 * barrier behind the phase. */
static void end_together(struct test *t, const char *name, double begin, int64_t bytes)
{
	struct phase *phase = &t->phase[t->phases++];
	double took;

	MPI_Barrier(MPI_COMM_WORLD);
	took = MPI_Wtime() - begin;
	MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	phase->name = name;
	phase->seconds = took;
	phase->operations = t->reached * t->ranks;
	phase->bytes = phase->operations * bytes;
}

void iotest_write_phase(struct test *t, const char *name, int64_t planned, int64_t bytes,
			iotest_operation *operation, void (*finish)(struct test *t))
{
	const double limit = t->options.stonewall_s, begin = begin_together();
	int64_t done = 0, most;

	while (done < planned && (limit <= 0 || done == 0 || MPI_Wtime() - begin < limit))
		operation(t, done++);
	MPI_Allreduce(&done, &t->least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&done, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	while (done < most)
		operation(t, done++);
	t->reached = most;
	if (finish)
		finish(t);
	end_together(t, name, begin, bytes);
}

void iotest_phase(struct test *t, const char *name, int64_t bytes, iotest_operation *operation)
{
	const double begin = begin_together();

	for (int64_t i = 0; i < t->reached; i++)
		operation(t, i);
	end_together(t, name, begin, bytes);
}
