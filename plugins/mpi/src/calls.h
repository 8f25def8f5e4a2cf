/* The MPI calls that are timed, MPI 3.1's signatures, and MPI 4's where the header has them. A row
 * is X(arity, Name, fortran_name, RULE, types of the arguments) and RULE says what this rank hands
 * over to be sent (sent_bytes.h). What is not listed (files, types, groups, attributes,
 * processes that are started) counts as computation.
 */
#ifndef SY_MPIPROF_CALLS_H
#define SY_MPIPROF_CALLS_H

#include <mpi.h>

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
#define AINTS const MPI_Aint *
#define OP MPI_Op
#define WIN MPI_Win
#define COUNT MPI_Count

#define POINT_TO_POINT(X) \
	X(6, Send, send, SENT_TO, IN, int, TYPE, int, int, COMM) \
	X(6, Ssend, ssend, SENT_TO, IN, int, TYPE, int, int, COMM) \
	X(6, Bsend, bsend, SENT_TO, IN, int, TYPE, int, int, COMM) \
	X(6, Rsend, rsend, SENT_TO, IN, int, TYPE, int, int, COMM) \
	X(7, Isend, isend, SENT_TO, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Issend, issend, SENT_TO, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Ibsend, ibsend, SENT_TO, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(7, Irsend, irsend, SENT_TO, IN, int, TYPE, int, int, COMM, REQUEST) \
	X(12, Sendrecv, sendrecv, SENT_TO, IN, int, TYPE, int, int, OUT, int, TYPE, int, int, COMM, STATUS) \
	X(9, Sendrecv_replace, sendrecv_replace, SENT_TO, OUT, int, TYPE, int, int, int, int, COMM, STATUS) \
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
	X(5, Testsome, testsome, NOTHING, int, REQUEST, int *, int *, STATUS) \
	X(3, Request_get_status, request_get_status, NOTHING, MPI_Request, int *, STATUS)

#define COLLECTIVE(X) \
	X(1, Barrier, barrier, NOTHING, COMM) \
	X(5, Bcast, bcast, BCAST, OUT, int, TYPE, int, COMM) \
	X(8, Gather, gather, GATHER, IN, int, TYPE, OUT, int, TYPE, int, COMM) \
	X(9, Gatherv, gatherv, GATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, int, COMM) \
	X(8, Scatter, scatter, SCATTER, IN, int, TYPE, OUT, int, TYPE, int, COMM) \
	X(9, Scatterv, scatterv, SCATTERV, IN, NS, NS, TYPE, OUT, int, TYPE, int, COMM) \
	X(7, Allgather, allgather, ALLGATHER, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(8, Allgatherv, allgatherv, ALLGATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(7, Alltoall, alltoall, ALLTOALL, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(9, Alltoallv, alltoallv, ALLTOALLV, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(9, Alltoallw, alltoallw, NOT_KEPT, IN, NS, NS, TYPES, OUT, NS, NS, TYPES, COMM) \
	X(7, Reduce, reduce, REDUCE_TO, IN, OUT, int, TYPE, OP, int, COMM) \
	X(6, Allreduce, allreduce, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Scan, scan, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Exscan, exscan, REDUCE, IN, OUT, int, TYPE, OP, COMM) \
	X(6, Reduce_scatter, reduce_scatter, REDUCE_SCATTER, IN, OUT, NS, TYPE, OP, COMM) \
	X(6, Reduce_scatter_block, reduce_scatter_block, REDUCE_BLOCK, IN, OUT, int, TYPE, OP, COMM) \
	X(7, Neighbor_allgather, neighbor_allgather, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(8, Neighbor_allgatherv, neighbor_allgatherv, NOT_KEPT, IN, int, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(7, Neighbor_alltoall, neighbor_alltoall, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM) \
	X(9, Neighbor_alltoallv, neighbor_alltoallv, NOT_KEPT, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM) \
	X(9, Neighbor_alltoallw, neighbor_alltoallw, NOT_KEPT, IN, NS, AINTS, TYPES, OUT, NS, AINTS, \
	  TYPES, COMM)

#define IMMEDIATE(X) \
	X(2, Ibarrier, ibarrier, NOTHING, COMM, REQUEST) \
	X(6, Ibcast, ibcast, BCAST, OUT, int, TYPE, int, COMM, REQUEST) \
	X(9, Igather, igather, GATHER, IN, int, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(10, Igatherv, igatherv, GATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, int, COMM, REQUEST) \
	X(9, Iscatter, iscatter, SCATTER, IN, int, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(10, Iscatterv, iscatterv, SCATTERV, IN, NS, NS, TYPE, OUT, int, TYPE, int, COMM, REQUEST) \
	X(8, Iallgather, iallgather, ALLGATHER, IN, int, TYPE, OUT, int, TYPE, COMM, REQUEST) \
	X(9, Iallgatherv, iallgatherv, ALLGATHERV, IN, int, TYPE, OUT, NS, NS, TYPE, COMM, REQUEST) \
	X(8, Ialltoall, ialltoall, ALLTOALL, IN, int, TYPE, OUT, int, TYPE, COMM, REQUEST) \
	X(10, Ialltoallv, ialltoallv, ALLTOALLV, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, COMM, REQUEST) \
	X(10, Ialltoallw, ialltoallw, NOT_KEPT, IN, NS, NS, TYPES, OUT, NS, NS, TYPES, COMM, REQUEST) \
	X(8, Ireduce, ireduce, REDUCE_TO, IN, OUT, int, TYPE, OP, int, COMM, REQUEST) \
	X(7, Iallreduce, iallreduce, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Iscan, iscan, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Iexscan, iexscan, REDUCE, IN, OUT, int, TYPE, OP, COMM, REQUEST) \
	X(7, Ireduce_scatter, ireduce_scatter, REDUCE_SCATTER, IN, OUT, NS, TYPE, OP, COMM, REQUEST) \
	X(7, Ireduce_scatter_block, ireduce_scatter_block, REDUCE_BLOCK, IN, OUT, int, TYPE, OP, COMM, \
	  REQUEST) \
	X(8, Ineighbor_allgather, ineighbor_allgather, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM, \
	  REQUEST) \
	X(9, Ineighbor_allgatherv, ineighbor_allgatherv, NOT_KEPT, IN, int, TYPE, OUT, NS, NS, TYPE, COMM, \
	  REQUEST) \
	X(8, Ineighbor_alltoall, ineighbor_alltoall, NOT_KEPT, IN, int, TYPE, OUT, int, TYPE, COMM, \
	  REQUEST) \
	X(10, Ineighbor_alltoallv, ineighbor_alltoallv, NOT_KEPT, IN, NS, NS, TYPE, OUT, NS, NS, TYPE, \
	  COMM, REQUEST) \
	X(10, Ineighbor_alltoallw, ineighbor_alltoallw, NOT_KEPT, IN, NS, AINTS, TYPES, OUT, NS, AINTS, \
	  TYPES, COMM, REQUEST)

#define ONE_SIDED(X) \
	X(8, Put, put, SENT_TO, IN, int, TYPE, int, AINT, int, TYPE, WIN) \
	X(9, Rput, rput, SENT_TO, IN, int, TYPE, int, AINT, int, TYPE, WIN, REQUEST) \
	X(8, Get, get, SENT_TO, OUT, int, TYPE, int, AINT, int, TYPE, WIN) \
	X(9, Rget, rget, SENT_TO, OUT, int, TYPE, int, AINT, int, TYPE, WIN, REQUEST) \
	X(9, Accumulate, accumulate, SENT_TO, IN, int, TYPE, int, AINT, int, TYPE, OP, WIN) \
	X(10, Raccumulate, raccumulate, SENT_TO, IN, int, TYPE, int, AINT, int, TYPE, OP, WIN, REQUEST) \
	X(12, Get_accumulate, get_accumulate, ACCUMULATED, IN, int, TYPE, OUT, int, TYPE, int, AINT, int, TYPE, \
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
	X(1, Win_flush_local_all, win_flush_local_all, NOTHING, WIN) \
	X(1, Win_sync, win_sync, NOTHING, WIN) \
	X(2, Win_test, win_test, NOTHING, WIN, int *) \
	X(6, Win_create, win_create, NOTHING, OUT, AINT, int, MPI_Info, COMM, WIN *) \
	X(6, Win_allocate, win_allocate, NOTHING, AINT, int, MPI_Info, COMM, OUT, WIN *) \
	X(6, Win_allocate_shared, win_allocate_shared, NOTHING, AINT, int, MPI_Info, COMM, OUT, WIN *) \
	X(3, Win_create_dynamic, win_create_dynamic, NOTHING, MPI_Info, COMM, WIN *) \
	X(1, Win_free, win_free, NOTHING, WIN *)

/* Each of these waits for the other ranks. */
#define COMMUNICATORS(X) \
	X(2, Comm_dup, comm_dup, NOTHING, COMM, COMM *) \
	X(3, Comm_dup_with_info, comm_dup_with_info, NOTHING, COMM, MPI_Info, COMM *) \
	X(3, Comm_idup, comm_idup, NOTHING, COMM, COMM *, REQUEST) \
	X(3, Comm_create, comm_create, NOTHING, COMM, MPI_Group, COMM *) \
	X(4, Comm_create_group, comm_create_group, NOTHING, COMM, MPI_Group, int, COMM *) \
	X(4, Comm_split, comm_split, NOTHING, COMM, int, int, COMM *) \
	X(5, Comm_split_type, comm_split_type, NOTHING, COMM, int, int, MPI_Info, COMM *) \
	X(6, Cart_create, cart_create, NOTHING, COMM, int, NS, NS, int, COMM *) \
	X(3, Cart_sub, cart_sub, NOTHING, COMM, NS, COMM *) \
	X(6, Graph_create, graph_create, NOTHING, COMM, int, NS, NS, int, COMM *) \
	X(9, Dist_graph_create, dist_graph_create, NOTHING, COMM, int, NS, NS, NS, NS, MPI_Info, int, \
	  COMM *) \
	X(10, Dist_graph_create_adjacent, dist_graph_create_adjacent, NOTHING, COMM, int, NS, NS, int, NS, \
	  NS, MPI_Info, int, COMM *) \
	X(6, Intercomm_create, intercomm_create, NOTHING, COMM, int, COMM, int, int, COMM *) \
	X(3, Intercomm_merge, intercomm_merge, NOTHING, COMM, int, COMM *) \
	X(1, Comm_disconnect, comm_disconnect, NOTHING, COMM *) \
	X(1, Comm_free, comm_free, NOTHING, COMM *)

/* MPI 4: partitioned messages (sent piece by piece, so that their size is not that of a call). */
#if MPI_VERSION >= 4
#define FOURTH(X) \
	X(4, Comm_idup_with_info, comm_idup_with_info, NOTHING, COMM, MPI_Info, COMM *, REQUEST) \
	X(2, Pready, pready, NOT_KEPT, int, MPI_Request) \
	X(3, Pready_range, pready_range, NOT_KEPT, int, int, MPI_Request) \
	X(3, Parrived, parrived, NOTHING, MPI_Request, int, int *)
#else
#define FOURTH(X)
#endif

/* MPI 4's large counts, and what has 13 arguments in Fortran: from C only. */
#if MPI_VERSION >= 4
#define FROM_C(X) \
	X(12, Isendrecv, isendrecv, SENT_TO, IN, int, TYPE, int, int, OUT, int, TYPE, int, int, COMM, \
	  REQUEST) \
	X(9, Isendrecv_replace, isendrecv_replace, SENT_TO, OUT, int, TYPE, int, int, int, int, COMM, \
	  REQUEST) \
	X(6, Send_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM) \
	X(6, Ssend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM) \
	X(6, Bsend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM) \
	X(6, Rsend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM) \
	X(7, Isend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM, REQUEST) \
	X(7, Issend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM, REQUEST) \
	X(7, Ibsend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM, REQUEST) \
	X(7, Irsend_c, , SENT_TO, IN, COUNT, TYPE, int, int, COMM, REQUEST) \
	X(12, Sendrecv_c, , SENT_TO, IN, COUNT, TYPE, int, int, OUT, COUNT, TYPE, int, int, COMM, STATUS) \
	X(9, Sendrecv_replace_c, , SENT_TO, OUT, COUNT, TYPE, int, int, int, int, COMM, STATUS) \
	X(7, Recv_c, , NOTHING, OUT, COUNT, TYPE, int, int, COMM, STATUS) \
	X(7, Irecv_c, , NOTHING, OUT, COUNT, TYPE, int, int, COMM, REQUEST) \
	X(5, Bcast_c, , BCAST, OUT, COUNT, TYPE, int, COMM) \
	X(8, Gather_c, , GATHER, IN, COUNT, TYPE, OUT, COUNT, TYPE, int, COMM) \
	X(8, Scatter_c, , SCATTER, IN, COUNT, TYPE, OUT, COUNT, TYPE, int, COMM) \
	X(7, Allgather_c, , ALLGATHER, IN, COUNT, TYPE, OUT, COUNT, TYPE, COMM) \
	X(7, Alltoall_c, , ALLTOALL, IN, COUNT, TYPE, OUT, COUNT, TYPE, COMM) \
	X(7, Reduce_c, , REDUCE_TO, IN, OUT, COUNT, TYPE, OP, int, COMM) \
	X(6, Allreduce_c, , REDUCE, IN, OUT, COUNT, TYPE, OP, COMM) \
	X(8, Put_c, , SENT_TO, IN, COUNT, TYPE, int, AINT, COUNT, TYPE, WIN) \
	X(8, Get_c, , SENT_TO, OUT, COUNT, TYPE, int, AINT, COUNT, TYPE, WIN) \
	X(9, Accumulate_c, , SENT_TO, IN, COUNT, TYPE, int, AINT, COUNT, TYPE, OP, WIN)
#else
#define FROM_C(X)
#endif

#define FORTRAN_CALLS(X) \
	POINT_TO_POINT(X) COLLECTIVE(X) IMMEDIATE(X) ONE_SIDED(X) COMMUNICATORS(X) FOURTH(X)
#define ALL_CALLS(X) FORTRAN_CALLS(X) FROM_C(X)
/* clang-format on */

#define SY_NUMBER(arity, Name, ...) SY_##Name,
enum sy_call { ALL_CALLS(SY_NUMBER) SY_CALLS };

#endif
