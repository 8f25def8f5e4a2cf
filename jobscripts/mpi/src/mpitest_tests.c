/* What is timed: each test does `count` operations; buffers are made before, looked at after. */
#include <stdlib.h>
#include <string.h>

#include "mpitest.h"

enum { WINDOW = 16, TAG = 7, STEP = 31, PATTERN = 251 };

/* Byte i of what rank `from` sends. */
static char pattern(size_t i, int from)
{
	return (char)((i * STEP + (size_t)from) % PATTERN);
}

static void fill(char *bytes, size_t size, int from)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = pattern(i, from);
}

static bool is_from(const char *bytes, size_t size, int from)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != pattern(i, from))
			return false;
	}
	return true;
}

static int partner(const struct world *w)
{
	return w->rank == w->first ? w->second : w->first;
}

bool mpitest_takes_part(const struct test *test, const struct world *w)
{
	return !test->pair || w->rank == w->first || w->rank == w->second;
}

static size_t doubles(const struct task *t)
{
	return t->size / sizeof(double);
}

static bool sums(const struct test *test)
{
	return strstr(test->name, "reduce") != NULL;
}

void mpitest_prepare(const struct test *test, struct task *t)
{
	const size_t blocks = test->messages ? (size_t)test->messages : (size_t)t->world->ranks;

	t->out = calloc(blocks, t->size + 1);
	t->back = calloc(blocks, t->size + 1);
	if (!t->out || !t->back)
		MPI_Abort(MPI_COMM_WORLD, MPITEST_PROGRAM_ERROR);
	for (size_t b = 0; b < blocks && !sums(test); b++)
		fill(t->out + b * t->size, t->size, t->world->rank);
	for (size_t i = 0; i < doubles(t) && sums(test); i++)
		((double *)(void *)t->out)[i] = t->world->rank + 1.0;
}

void mpitest_free(struct task *t)
{
	free(t->out);
	free(t->back);
}

static void latency(struct task *t, long count)
{
	const int size = (int)t->size, with = partner(t->world);

	for (long i = 0; i < count; i++) {
		if (t->world->rank == t->world->first) {
			MPI_Send(t->out, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD);
			MPI_Recv(t->back, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(t->back, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Send(t->out, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD);
		}
	}
}

/* The second of the pair has all that it was sent. */
static void answer(const struct task *t)
{
	char word = 0;

	if (t->world->rank == t->world->first)
		MPI_Recv(&word, 1, MPI_BYTE, partner(t->world), TAG + 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	else
		MPI_Send(&word, 1, MPI_BYTE, partner(t->world), TAG + 1, MPI_COMM_WORLD);
}

/* `count` messages, WINDOW of them on their way at once. */
static void stream(struct task *t, long count, bool sends, bool receives)
{
	const int size = (int)t->size, with = partner(t->world);
	MPI_Request requests[2 * WINDOW];

	for (long done = 0; done < count; done += WINDOW) {
		int posted = 0;

		for (long i = done; i < count && i < done + WINDOW; i++) {
			char *to = t->back + (size_t)(i - done) * t->size;

			if (receives)
				MPI_Irecv(to, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD,
					  &requests[posted++]);
			if (sends)
				MPI_Isend(t->out, size, MPI_BYTE, with, TAG, MPI_COMM_WORLD,
					  &requests[posted++]);
		}
		MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
	}
	answer(t);
}

static void bandwidth(struct task *t, long count)
{
	const bool first = t->world->rank == t->world->first;

	stream(t, count, first, !first);
}

static void bi_bandwidth(struct task *t, long count)
{
	stream(t, count, true, true);
}

static void alltoall(struct task *t, long count)
{
	for (long i = 0; i < count; i++)
		MPI_Alltoall(t->out, (int)t->size, MPI_BYTE, t->back, (int)t->size, MPI_BYTE,
			     MPI_COMM_WORLD);
}

static void reduce(struct task *t, long count)
{
	for (long i = 0; i < count; i++)
		MPI_Reduce(t->out, t->back, (int)doubles(t), MPI_DOUBLE, MPI_SUM, 0,
			   MPI_COMM_WORLD);
}

static void allreduce(struct task *t, long count)
{
	for (long i = 0; i < count; i++)
		MPI_Allreduce(t->out, t->back, (int)doubles(t), MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
}

static void barrier(struct task *t, long count)
{
	(void)t;
	for (long i = 0; i < count; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

static bool from_partner(const struct task *t)
{
	return is_from(t->back, t->size, partner(t->world));
}

static bool received(const struct task *t)
{
	return t->world->rank == t->world->first || from_partner(t);
}

static bool from_all(const struct task *t)
{
	for (int r = 0; r < t->world->ranks; r++) {
		if (!is_from(t->back + (size_t)r * t->size, t->size, r))
			return false;
	}
	return true;
}

static bool is_sum(const struct task *t)
{
	const double sum = 0.5 * t->world->ranks * (t->world->ranks + 1.0);

	for (size_t i = 0; i < doubles(t); i++) {
		if (((const double *)(const void *)t->back)[i] != sum)
			return false;
	}
	return true;
}

static bool is_sum_at_first(const struct task *t)
{
	return t->world->rank != 0 || is_sum(t);
}

static bool nothing(const struct task *t)
{
	(void)t;
	return true;
}

const struct test mpitest_tests[] = {
    {"latency", true, false, true, 1, latency, from_partner},
    {"bandwidth", true, false, true, WINDOW, bandwidth, received},
    {"bi_bandwidth", true, false, true, WINDOW, bi_bandwidth, from_partner},
    {"alltoall", false, true, true, 0, alltoall, from_all},
    {"reduce", false, true, true, 1, reduce, is_sum_at_first},
    {"allreduce", false, true, true, 1, allreduce, is_sum},
    {"barrier", false, true, false, 1, barrier, nothing},
};
const int mpitest_count = sizeof(mpitest_tests) / sizeof(mpitest_tests[0]);
