/* MPI 4's large counts, and a call of its own; empty in an earlier MPI. */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
#if MPI_VERSION >= 4
	int rank, mine[100] = {0}, other[100];
	MPI_Request request;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Sendrecv_c(mine, 100, MPI_INT, 1 - rank, 0, other, 100, MPI_INT, 1 - rank, 0,
		       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Allreduce_c(mine, other, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Isendrecv(mine, 100, MPI_INT, 1 - rank, 0, other, 100, MPI_INT, 1 - rank, 0,
		      MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
	MPI_Finalize();
	return 0;
}
