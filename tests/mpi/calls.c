/* Known numbers of MPI calls and bytes, on any number of ranks from 2: what the profile must say.
 * With an argument it waits so many milliseconds in rank 0 before a barrier. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static int rank, ranks;

static void ring(void)
{
	double out[16] = {0}, in[16];
	MPI_Request request[2];

	for (int i = 0; i < 10; i++) {
		MPI_Irecv(in, 16, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
			  request);
		MPI_Isend(out, 16, MPI_DOUBLE, (rank + 1) % ranks, 0, MPI_COMM_WORLD, request + 1);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	}
}

static void pair(void)
{
	char text[1000] = {0};

	for (int i = 0; i < 3; i++) {
		if (rank == 0)
			MPI_Send(text, 1000, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		if (rank == 1)
			MPI_Recv(text, 1000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void collectives(void)
{
	int n[64], at[64], part[64] = {0}, all[64] = {0}, one = 1;

	for (int i = 0; i < ranks; i++)
		n[i] = 1, at[i] = i;
	MPI_Bcast(all, 5, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Alltoall(part, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoallv(part, n, at, MPI_INT, all, n, at, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, n, at, MPI_INT,
		      MPI_COMM_WORLD);
	MPI_Scatter(part, 1, MPI_INT, all, 1, MPI_INT, 1, MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	else
		MPI_Gather(&one, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, at, MPI_INT, MPI_COMM_WORLD);
	MPI_Reduce_scatter(part, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	ring();
	pair();
	collectives();
	if (argc > 1 && rank == 0) {
		const long ms = strtol(argv[1], NULL, 10);
		const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

		nanosleep(&pause, NULL);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
