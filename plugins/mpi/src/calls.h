/* The MPI calls that are timed, MPI 3.1's signatures. A row is
 *   X(arity, Name, fortran_name, RULE, types of the arguments)
 * and RULE says what this rank hands over to be sent (rules.h). What is not listed (files, types,
 * groups, attributes) counts as computation.
 */
#ifndef SY_MPIPROF_CALLS_H
#define SY_MPIPROF_CALLS_H

/* clang-format off */
#define IN const void *
#define OUT void *
#define NS const int *
#define TYPE MPI_Datatype
#define TYPES const MPI_Datatype *
#define COMM MPI_Comm
#define REQUEST MPI_Request *
#define STATUS MPI_Status *
#define AINT MPI_Aint
#define OP MPI_Op
#define WIN MPI_Win

#define POINT_TO_POINT(X) \
	X(6, Send, send, SENT, IN, int, TYPE, int, int, COMM) \
	X(6, Ssend, ssend, SENT, IN, int, TYPE, int, int, COMM) \
	X(6, Bsend, bsend, SENT, IN, int, TYPE, int, int, COMM) \
	X(6, Rsend, rsend, SENT, IN, int, TYPE, int, int, COMM) \
	X(7, Isend, isend, SENT, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Issend, issend, SENT, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Ibsend, ibsend, SENT, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Irsend, irsend, SENT, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(12, Sendrecv, sendrecv, SENT, IN, int, TYPE, int, int, OUT, int, TYPE, int, int, COMM, STATUS) \
	X(9, Sendrecv_replace, sendrecv_replace, SENT, OUT, int, TYPE, int, int, int, int, COMM, STATUS) \
	X(7, Recv, recv, NOTHING, OUT, int, TYPE, int, int, COMM, STATUS) \
	X(7, Irecv, irecv, NOTHING, OUT, int, TYPE, int, int, COMM, REQUEST) \
	X(5, Mrecv, mrecv, NOTHING, OUT, int, TYPE, MPI_Message *, STATUS) \
	X(5, Imrecv, imrecv, NOTHING, OUT, int, TYPE, MPI_Message *, REQUEST) \
	X(4, Probe, probe, NOTHING, int, int, COMM, STATUS) \
	X(5, Iprobe, iprobe, NOTHING, int, int, COMM, int *, STATUS) \
	X(5, Mprobe, mprobe, NOTHING, int, int, COMM, MPI_Message *, STATUS) \
	X(6, Improbe, improbe, NOTHING, int, int, COMM, int *, MPI_Message *, STATUS) \
	X(1, Start, start, NOT_KEPT, REQUEST) \
	X(2, Startall, startall, NOT_KEPT, int, REQUEST) \
	X(2, Wait, wait, NOTHING, REQUEST, STATUS) \
	X(3, Waitall, waitall, NOTHING, int, REQUEST, STATUS) \
	X(4, Waitany, waitany, NOTHING, int, REQUEST, int *, STATUS) \
	X(5, Waitsome, waitsome, NOTHING, int, REQUEST, int *, int *, STATUS) \
	X(3, Test, test, NOTHING, REQUEST, int *, STATUS) \
	X(4, Testall, testall, NOTHING, int, REQUEST, int *, STATUS) \
	X(5, Testany, testany, NOTHING, int, REQUEST, int *, int *, STATUS) \
	X(5, Testsome, testsome, NOTHING, int, REQUEST, int *, int *, STATUS)

#define COLLECTIVE(X) \
	X(1, Barrier, barrier, NOTHING, COMM) \
	X(5, Bcast, bcast, BCAST, OUT, int, TYPE, int, COMM) \
	X(8, Gather, gather, GATHER, IN, int, TYPE, OUT, int, TYPE, int, COMM) \
	X(9, Gatherv, gatherv, GATHER, IN, int, TYPE, OUT, NS, NS, TYPE, int, COMM) \
	X(8, Scatter, scatter, SCATTER, IN, int, TYPE, OUT, int, TYPE, int, COMM) \
	X(9, Scatterv, scatterv, SCATTERV, IN, NS, NS, TYPE, OUT, int, TYPE, int, COMM) \
	X(7, Allgather, allgather, ALLGATHER, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(8, Allgatherv, allgatherv, ALLGATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(7, Alltoall, alltoall, ALLTOALL, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(9, Alltoallv, alltoallv, ALLTOALLV, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(9, Alltoallw, alltoallw, NOT_KEPT, IN, NS, NS, TYPES, OUT, NS, NS, TYPES, COMM) \
	X(7, Reduce, reduce, REDUCE, IN, OUT, int, TYPE, OP, int, COMM) \
	X(6, Allreduce, allreduce, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Scan, scan, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Exscan, exscan, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Reduce_scatter, reduce_scatter, REDUCE_SCATTER, IN, OUT, NS, TYPE, OP, COMM) \
	X(6, Reduce_scatter_block, reduce_scatter_block, REDUCE_BLOCK, IN, OUT, int, TYPE, OP, COMM) \
	X(7, Neighbor_allgather, neighbor_allgather, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(8, Neighbor_allgatherv, neighbor_allgatherv, NOT_KEPT, IN, int, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(7, Neighbor_alltoall, neighbor_alltoall, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(9, Neighbor_alltoallv, neighbor_alltoallv, NOT_KEPT, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM)

#define IMMEDIATE(X) \
	X(2, Ibarrier, ibarrier, NOTHING, COMM, REQUEST) \
	X(6, Ibcast, ibcast, BCAST, OUT, int, TYPE, int, COMM, REQUEST) \
	X(9, Igather, igather, GATHER, IN, int, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(10, Igatherv, igatherv, GATHER, IN, int, TYPE, OUT, NS, NS, TYPE, int, COMM, REQUEST) \
	X(9, Iscatter, iscatter, SCATTER, IN, int, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(10, Iscatterv, iscatterv, SCATTERV, IN, NS, NS, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(8, Iallgather, iallgather, ALLGATHER, IN, int, TYPE, OUT, int, TYPE, COMM, REQUEST) \
	X(9, Iallgatherv, iallgatherv, ALLGATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, COMM, REQUEST) \
	X(8, Ialltoall, ialltoall, ALLTOALL, IN, int, TYPE, OUT, int, TYPE, COMM, REQUEST) \
	X(10, Ialltoallv, ialltoallv, ALLTOALLV, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM, REQUEST) \
	X(10, Ialltoallw, ialltoallw, NOT_KEPT, IN, NS, NS, TYPES, OUT, NS, NS, TYPES, COMM, REQUEST) \
	X(8, Ireduce, ireduce, REDUCE, IN, OUT, int, TYPE, OP, int, COMM, REQUEST) \
	X(7, Iallreduce, iallreduce, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Iscan, iscan, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Iexscan, iexscan, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Ireduce_scatter, ireduce_scatter, REDUCE_SCATTER, IN, OUT, NS, TYPE, OP, COMM, REQUEST) \
	X(7, Ireduce_scatter_block, ireduce_scatter_block, REDUCE_BLOCK, IN, OUT, int, TYPE, OP, COMM, \
	  REQUEST)

#define ONE_SIDED(X) \
	X(8, Put, put, SENT, IN, int, TYPE, int, AINT, int, TYPE, WIN) \
	X(9, Rput, rput, SENT, IN, int, TYPE, int, AINT, int, TYPE, WIN, REQUEST) \
	X(8, Get, get, SENT, OUT, int, TYPE, int, AINT, int, TYPE, WIN) \
	X(9, Rget, rget, SENT, OUT, int, TYPE, int, AINT, int, TYPE, WIN, REQUEST) \
	X(9, Accumulate, accumulate, SENT, IN, int, TYPE, int, AINT, int, TYPE, OP, WIN) \
	X(10, Raccumulate, raccumulate, SENT, IN, int, TYPE, int, AINT, int, TYPE, OP, WIN, REQUEST) \
	X(12, Get_accumulate, get_accumulate, SENT, IN, int, TYPE, OUT, int, TYPE, int, AINT, int, TYPE, \
	  OP, WIN) \
	X(7, Fetch_and_op, fetch_and_op, ONE_ITEM, IN, OUT, TYPE, int, AINT, OP, WIN) \
	X(7, Compare_and_swap, compare_and_swap, SWAPPED, IN, IN, OUT, TYPE, int, AINT, WIN) \
	X(2, Win_fence, win_fence, NOTHING, int, WIN) \
	X(3, Win_start, win_start, NOTHING, MPI_Group, int, WIN) \
	X(3, Win_post, win_post, NOTHING, MPI_Group, int, WIN) \
	X(1, Win_complete, win_complete, NOTHING, WIN) \
	X(1, Win_wait, win_wait, NOTHING, WIN) \
	X(4, Win_lock, win_lock, NOTHING, int, int, int, WIN) \
	X(2, Win_unlock, win_unlock, NOTHING, int, WIN) \
	X(2, Win_lock_all, win_lock_all, NOTHING, int, WIN) \
	X(1, Win_unlock_all, win_unlock_all, NOTHING, WIN) \
	X(2, Win_flush, win_flush, NOTHING, int, WIN) \
	X(1, Win_flush_all, win_flush_all, NOTHING, WIN) \
	X(2, Win_flush_local, win_flush_local, NOTHING, int, WIN) \
	X(6, Win_create, win_create, NOTHING, OUT, AINT, int, MPI_Info, COMM, WIN *) \
	X(1, Win_free, win_free, NOTHING, WIN *)

/* Each of these waits for the other ranks. */
#define COMMUNICATORS(X) \
	X(2, Comm_dup, comm_dup, NOTHING, COMM, COMM *) \
	X(3, Comm_create, comm_create, NOTHING, COMM, MPI_Group, COMM *) \
	X(4, Comm_split, comm_split, NOTHING, COMM, int, int, COMM *) \
	X(5, Comm_split_type, comm_split_type, NOTHING, COMM, int, int, MPI_Info, COMM *) \
	X(6, Cart_create, cart_create, NOTHING, COMM, int, NS, NS, int, COMM *) \
	X(1, Comm_free, comm_free, NOTHING, COMM *)

#define ALL_CALLS(X) \
	POINT_TO_POINT(X) COLLECTIVE(X) IMMEDIATE(X) ONE_SIDED(X) COMMUNICATORS(X)
/* clang-format on */

#define SY_NUMBER(arity, Name, ...) SY_##Name,
enum sy_call { ALL_CALLS(SY_NUMBER) SY_CALLS };

#endif
