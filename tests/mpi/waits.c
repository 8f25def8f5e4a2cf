/* Calls that wait for a late rank, each timed by the program itself: rank 1 prints on stdout
 *   NAME SECONDS
 * and rank 0 comes late to each. What is sent to MPI_PROC_NULL is in `nobody`, waiting threads in
 * `threads`: there the lines are begin and end of each thread's waiting.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LATE_US = 100000, THREADS = 4 };

static int rank, ranks;

static double wait_for_late(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		usleep(LATE_US);
	return MPI_Wtime();
}

static void tell(const char *name, double begin)
{
	const double seconds = MPI_Wtime() - begin;

	if (rank == 1)
		printf("%s %.9f\n", name, seconds);
}

#define TIMED(name, call)                                                                          \
	do {                                                                                       \
		const double begin = wait_for_late();                                              \
		call;                                                                              \
		tell("MPI_" name, begin);                                                          \
	} while (0)

static void windows(void)
{
	MPI_Win win;
	void *memory;

	TIMED("Win_allocate",
	      MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
	TIMED("Win_free", MPI_Win_free(&win));
	TIMED("Win_allocate_shared",
	      MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
	MPI_Win_free(&win);
	TIMED("Win_create_dynamic", MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	MPI_Win_free(&win);
}

static void groups(void)
{
	MPI_Comm half, made;
	MPI_Group all;
	MPI_Request request;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	TIMED("Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, all, 7, &made));
	MPI_Comm_free(&made);
	TIMED("Comm_dup_with_info", MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made));
	MPI_Comm_free(&made);
	TIMED("Comm_idup", MPI_Comm_idup(MPI_COMM_WORLD, &made, &request));
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&made);
	MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
	TIMED("Intercomm_create",
	      MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank, 3, &made));
	MPI_Comm_free(&half);
	TIMED("Intercomm_merge", MPI_Intercomm_merge(made, rank, &half));
	TIMED("Comm_disconnect", MPI_Comm_disconnect(&half));
	MPI_Comm_free(&made);
	MPI_Group_free(&all);
}

static void graphs(void)
{
	int other = 1 - rank, one = 1, sent[1] = {rank}, got[1] = {0}, index[2] = {1, 2};
	int edges[2] = {1, 0}, keep = 1, periods = 0;
	MPI_Comm made, part;
	MPI_Request request;

	TIMED("Dist_graph_create", MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &other,
							 &one, MPI_INFO_NULL, 0, &made));
	MPI_Comm_free(&made);
	TIMED("Graph_create", MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &made));
	MPI_Comm_free(&made);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periods, 0, &made);
	TIMED("Cart_sub", MPI_Cart_sub(made, &keep, &part));
	MPI_Comm_free(&part);
	MPI_Comm_free(&made);
	TIMED("Dist_graph_create_adjacent",
	      MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, &one, 1, &other, &one,
					     MPI_INFO_NULL, 0, &made));
	TIMED("Neighbor_alltoall", MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, made));
	TIMED("Ineighbor_allgather",
	      MPI_Ineighbor_allgather(sent, 1, MPI_INT, got, 1, MPI_INT, made, &request));
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&made);
}

/* Every kind of send that may go to nobody; and one that does not. */
static void nobody(void)
{
	int data[250] = {0}, more[250] = {0};
	MPI_Request request;
	MPI_Win win;

	MPI_Send(data, 250, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
	MPI_Isend(data, 250, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Sendrecv(data, 250, MPI_INT, MPI_PROC_NULL, 0, more, 250, MPI_INT, MPI_PROC_NULL, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace(data, 250, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	MPI_Win_create(more, sizeof(more), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(data, 250, MPI_INT, MPI_PROC_NULL, 0, 250, MPI_INT, win);
	MPI_Accumulate(data, 250, MPI_INT, MPI_PROC_NULL, 0, 250, MPI_INT, MPI_SUM, win);
	MPI_Fetch_and_op(data, more, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	MPI_Sendrecv(data, 10, MPI_INT, 1 - rank, 0, more, 10, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

struct waiter {
	pthread_t thread;
	int number;
	double begin, end;
};

static void *receive(void *argument)
{
	struct waiter *own = argument;
	int got;

	own->begin = MPI_Wtime();
	MPI_Recv(&got, 1, MPI_INT, 0, own->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	own->end = MPI_Wtime();
	return NULL;
}

static void tell_waiters(const struct waiter *waiters)
{
	for (int i = 0; i < THREADS; i++)
		printf("begin%d %.9f\nend%d %.9f\n", i, waiters[i].begin, i, waiters[i].end);
}

/* Rank 1 waits in four threads at once; nothing else of it is communication but two barriers. */
static void threads(void)
{
	struct waiter waiters[THREADS];
	double begin;

	wait_for_late();
	for (int i = 0; i < THREADS; i++) {
		waiters[i].number = i;
		if (rank == 0)
			MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
		else
			pthread_create(&waiters[i].thread, NULL, receive, &waiters[i]);
	}
	for (int i = 0; i < THREADS && rank == 1; i++)
		pthread_join(waiters[i].thread, NULL);
	if (rank == 1)
		tell_waiters(waiters);
	begin = MPI_Wtime();
	usleep(LATE_US);
	tell("alone", begin);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int level;

	MPI_Init_thread(&argc, &argv,
			!strcmp(what, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!strcmp(what, "nobody")) {
		nobody();
	} else if (!strcmp(what, "threads")) {
		threads();
	} else {
		windows();
		groups();
		graphs();
	}
	MPI_Finalize();
	return 0;
}
