#include "sent_bytes.h"

#include <dlfcn.h>
#include <stddef.h>

const void *sy_fortran_in_place;

/* The names in Open MPI's ompi/mpi/fortran/base/constants.h, and in MPICH's module mpi_f08. */
#ifdef OPEN_MPI
#define IN_PLACE_NAME "mpi_fortran_in_place_"
#else
#define IN_PLACE_NAME "MPIR_F08_MPI_IN_PLACE"
#endif

void sy_find_fortran(void)
{
	sy_fortran_in_place = dlsym(RTLD_DEFAULT, IN_PLACE_NAME);
}

static long size_of(MPI_Datatype type)
{
	int size = 0;

	/* Allowed where the count is 0; asking for its size would end the program. */
	if (type == MPI_DATATYPE_NULL)
		return 0;
	PMPI_Type_size(type, &size);
	return size;
}

long sy_bytes(long long n, MPI_Datatype type)
{
	return n > 0 ? (long)n * size_of(type) : 0;
}

long sy_bytes_v(const int *n, MPI_Datatype type, MPI_Comm comm)
{
	long items = 0;

	for (int i = 0; i < sy_peers(comm); i++)
		items += n[i];
	return items ? items * size_of(type) : 0;
}

int sy_rank(MPI_Comm comm)
{
	int rank = 0;

	PMPI_Comm_rank(comm, &rank);
	return rank;
}

static int is_intercommunicator(MPI_Comm comm)
{
	int flag = 0;

	PMPI_Comm_test_inter(comm, &flag);
	return flag;
}

int sy_is_root(int root, MPI_Comm comm)
{
	return is_intercommunicator(comm) ? root == MPI_ROOT : root == sy_rank(comm);
}

int sy_peers(MPI_Comm comm)
{
	int size = 0;

	if (is_intercommunicator(comm))
		PMPI_Comm_remote_size(comm, &size);
	else
		PMPI_Comm_size(comm, &size);
	return size;
}
