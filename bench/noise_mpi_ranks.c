/* For bench/noise.py: two ranks that wait for orders. A line on rank 0's stdin is one: `b` is a
 * loop of MPI_Barrier, `w` a fixed piece of work on each rank, with no communication but at its
 * ends. The answer is how long it took, in ns, of the slowest rank. How much is done was found at
 * the start, so that one order takes about argv[1] ms on a quiet machine; it is the same for every
 * order. */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum order { STOP = 0, BARRIERS = 'b', WORK = 'w' };

static volatile uint64_t sink;

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void make_barriers(int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

/* Integers in registers (xorshift64, Marsaglia 2003): no memory, no system call. */
static void do_work(int64_t count)
{
	uint64_t x = 88172645463325252u;

	for (int64_t i = 0; i < count; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

static int64_t measure_ns(void (*what)(int64_t), int64_t count)
{
	int64_t begin, own, slowest;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_ns();
	what(count);
	own = now_ns() - begin;
	MPI_Allreduce(&own, &slowest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

/* So many as take `ns` where nothing disturbs: of the fastest of five. */
static int64_t find_count(void (*what)(int64_t), int64_t ns)
{
	const int64_t tried = 200000;
	int64_t least = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t took = measure_ns(what, tried);

		least = took < least ? took : least;
	}
	return (int64_t)((double)ns * (double)tried / (double)least);
}

static int next_order(int rank)
{
	int order = STOP;

	if (rank == 0)
		do
			order = getchar();
		while (order == '\n');
	if (order == EOF)
		order = STOP;
	MPI_Bcast(&order, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return order;
}

int main(int argc, char **argv)
{
	int rank, order;
	int64_t ns, barriers, work;
	cpu_set_t cpus;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	CPU_ZERO(&cpus);
	CPU_SET(rank, &cpus); /* each on a processor of its own, whatever mpirun does */
	(void)sched_setaffinity(0, sizeof(cpus), &cpus);
	ns = atoll(argc > 1 ? argv[1] : "500") * 1000000;
	barriers = find_count(make_barriers, ns);
	work = find_count(do_work, ns);
	if (rank == 0)
		(void)printf("ready\n");
	(void)fflush(stdout);
	while ((order = next_order(rank)) != STOP) {
		int64_t took = order == BARRIERS ? measure_ns(make_barriers, barriers)
						 : measure_ns(do_work, work);

		if (rank == 0)
			(void)printf("%lld\n", (long long)took);
		(void)fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
