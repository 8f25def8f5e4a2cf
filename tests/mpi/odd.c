/* What a profile must survive: argument `threads`, sends from two threads at once; `persistent`,
 * requests whose sizes are not kept; `abort`, no MPI_Finalize. */
#include <mpi.h>
#include <pthread.h>
#include <string.h>

enum { SENDS = 2000, PROBES = 100000, PROBED = 99 };
static int rank;

static void *exchange(void *tag)
{
	int flag;

	for (int i = 0; i < PROBES; i++)
		MPI_Iprobe(0, PROBED, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	for (int i = 0; i < SENDS; i++) {
		int value = i;

		if (rank == 0)
			MPI_Send(&value, 1, MPI_INT, 1, *(int *)tag, MPI_COMM_WORLD);
		else if (rank == 1)
			MPI_Recv(&value, 1, MPI_INT, 0, *(int *)tag, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	}
	return NULL;
}

/* Each probe finds a message of its own: one that finds none yields the processor (Open MPI's
 * mpi_yield_when_idle), and 400,000 of these take minutes where other processes compute. */
static void threads(void)
{
	int tags[2] = {1, 2}, sent = 0, received;
	MPI_Request own[2];
	pthread_t thread;

	MPI_Isend(&sent, 1, MPI_INT, 0, PROBED, MPI_COMM_SELF, &own[0]);
	pthread_create(&thread, NULL, exchange, &tags[0]);
	exchange(&tags[1]);
	pthread_join(thread, NULL);
	MPI_Irecv(&received, 1, MPI_INT, 0, PROBED, MPI_COMM_SELF, &own[1]);
	MPI_Waitall(2, own, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
	double value = 0;
	MPI_Request request;

	if (rank == 0)
		MPI_Send_init(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request);
	else
		MPI_Recv_init(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 5; i++) {
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && !strcmp(argv[1], "threads"))
		threads();
	if (argc > 1 && !strcmp(argv[1], "persistent"))
		persistent();
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1 && !strcmp(argv[1], "abort"))
		return 0;
	MPI_Finalize();
	return 0;
}
