/* What a rank hands over to be sent in one call, in bytes, from the call's arguments a0, a1, … The
 * letter L says whose they are: C's own, or F, Fortran's, which are all addresses. Which arguments
 * count, also with MPI_IN_PLACE: MPI 3.1, chapters 3 to 5 and 11. D is Fortran with buffers
 * described by CFI_cdesc_t, whose first member is the address (Fortran 2018, 18.5.3).
 */
#ifndef SY_MPIPROF_SENT_BYTES_H
#define SY_MPIPROF_SENT_BYTES_H

#include <mpi.h>

/* The rank sends nothing of its own in this call; it does, but how much is not known. */
#define SY_NO_MESSAGE (-1L)
#define SY_NOT_KEPT   (-2L)

#define C_INT(a)      (a)
#define C_INTS(a)     (a)
#define C_TYPE(a)     (a)
#define C_COMM(a)     (a)
#define C_IN_PLACE(a) ((a) == MPI_IN_PLACE)

#define F_INT(a)      (*(const MPI_Fint *)(a))
#define F_INTS(a)     ((const int *)(a))
#define F_TYPE(a)     PMPI_Type_f2c(F_INT(a))
#define F_COMM(a)     PMPI_Comm_f2c(F_INT(a))
#define F_IN_PLACE(a) ((a) == sy_fortran_in_place)

#define D_INT(a)      F_INT(a)
#define D_INTS(a)     F_INTS(a)
#define D_TYPE(a)     F_TYPE(a)
#define D_COMM(a)     F_COMM(a)
#define D_IN_PLACE(a) (*(const void *const *)(a) == sy_fortran_in_place)

#define NOTHING(L)  SY_NO_MESSAGE
#define NOT_KEPT(L) SY_NOT_KEPT
#define SENT(L)	    sy_bytes(L##_INT(a1), L##_TYPE(a2))
#define REDUCE(L)   sy_bytes(L##_INT(a2), L##_TYPE(a3))
/* Nobody gets what is sent to MPI_PROC_NULL, as at the edge of a grid (MPI 3.1, 3.11). */
#define TO(rank, bytes) ((rank) == MPI_PROC_NULL ? SY_NO_MESSAGE : (bytes))
#define SENT_TO(L)	TO(L##_INT(a3), SENT(L))
#define ACCUMULATED(L)	TO(L##_INT(a6), SENT(L))
#define ONE_ITEM(L)	TO(L##_INT(a3), sy_bytes(1, L##_TYPE(a2)))
#define SWAPPED(L)	TO(L##_INT(a4), sy_bytes(1, L##_TYPE(a3)))
/* Of two groups only the one without the root gives something to it. */
#define GIVEN(root, bytes) ((root) == MPI_ROOT ? SY_NO_MESSAGE : TO(root, bytes))
#define GATHER(L)	   (L##_IN_PLACE(a0) ? SY_NO_MESSAGE : GIVEN(L##_INT(a6), SENT(L)))
#define GATHERV(L)	   (L##_IN_PLACE(a0) ? SY_NO_MESSAGE : GIVEN(L##_INT(a7), SENT(L)))
#define REDUCE_TO(L)	   GIVEN(L##_INT(a5), REDUCE(L))
#define BCAST(L)	   (sy_is_root(L##_INT(a3), L##_COMM(a4)) ? SENT(L) : SY_NO_MESSAGE)
#define SCATTER(L)                                                                                 \
	(sy_is_root(L##_INT(a6), L##_COMM(a7)) ? SENT(L) * sy_peers(L##_COMM(a7)) : SY_NO_MESSAGE)
#define SCATTERV(L)                                                                                \
	(sy_is_root(L##_INT(a7), L##_COMM(a8))                                                     \
	     ? sy_bytes_v(L##_INTS(a1), L##_TYPE(a3), L##_COMM(a8))                                \
	     : SY_NO_MESSAGE)
#define ALLGATHER(L) (L##_IN_PLACE(a0) ? sy_bytes(L##_INT(a4), L##_TYPE(a5)) : SENT(L))
#define ALLGATHERV(L)                                                                              \
	(L##_IN_PLACE(a0) ? sy_bytes(L##_INTS(a4)[sy_rank(L##_COMM(a7))], L##_TYPE(a6)) : SENT(L))
#define ALLTOALL(L) (ALLGATHER(L) * sy_peers(L##_COMM(a6)))
#define ALLTOALLV(L)                                                                               \
	(L##_IN_PLACE(a0) ? sy_bytes_v(L##_INTS(a5), L##_TYPE(a7), L##_COMM(a8))                   \
			  : sy_bytes_v(L##_INTS(a1), L##_TYPE(a3), L##_COMM(a8)))
#define REDUCE_SCATTER(L) sy_bytes_v(L##_INTS(a2), L##_TYPE(a3), L##_COMM(a5))
#define REDUCE_BLOCK(L)	  (REDUCE(L) * sy_peers(L##_COMM(a5)))

/* The address that is MPI_IN_PLACE in Fortran; NULL in programs without Fortran. */
extern const void *sy_fortran_in_place;
void sy_find_fortran(void);

/* Bytes of n items, or of the sum of `n`, one per rank of the other side. */
long sy_bytes(long long n, MPI_Datatype type);
long sy_bytes_v(const int *n, MPI_Datatype type, MPI_Comm comm);
int sy_rank(MPI_Comm comm);
int sy_is_root(int root, MPI_Comm comm);
/* How many ranks a collective call sends to: all, or those of the other group. */
int sy_peers(MPI_Comm comm);

#endif
