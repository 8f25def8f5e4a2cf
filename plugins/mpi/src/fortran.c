/* Fortran's calls, whatever their arguments mean: those that do not end up in MPI_Send of C.
 * Open MPI 4: mpi_send_ (mpif.h, use mpi) and mpi_send_f08_ (use mpi_f08). MPICH 4: of use mpi_f08
 * mpi_barrier_f08_, and with a buffer mpi_send_f08ts_, which takes it as a descriptor.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "sent_bytes.h"
#include "profile.h"

#pragma GCC visibility push(default)

static void *next_call(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "steelyard-mpiprof: %s: in no library of the program\n", name);
		abort();
	}
	return found;
}

/* clang-format off */
#define P1 void *a0, void *a1
#define P2 P1, void *a2
#define P3 P2, void *a3
#define P4 P3, void *a4
#define P5 P4, void *a5
#define P6 P5, void *a6
#define P7 P6, void *a7
#define P8 P7, void *a8
#define P9 P8, void *a9
#define P10 P9, void *a10
#define P12 P10, void *a11, void *a12
#define A1 a0, a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A12 A10, a11, a12

/* The last argument more is the error code; with mpi_f08 it may be absent, which is a null. */
#define F_CALL(L, Name, symbol, RULE, parameters, arguments) \
	void symbol(parameters); \
	void symbol(parameters) \
	{ \
		static void (*next)(parameters); \
		struct sy_timing timing; \
		if (!next) \
			*(void **)&next = next_call(#symbol); \
		timing = sy_begin(); \
		next(arguments); \
		sy_end(timing, SY_##Name, timing.counts ? RULE(L) : SY_NO_MESSAGE); \
	}

#ifdef OPEN_MPI
#define F_ROW(arity, Name, name, RULE, ...) \
	F_CALL(F, Name, mpi_##name##_, RULE, P##arity, A##arity) \
	F_CALL(F, Name, mpi_##name##_f08_, RULE, P##arity, A##arity)
#else
#define F_ROW(arity, Name, name, RULE, ...) \
	F_CALL(F, Name, mpi_##name##_f08_, RULE, P##arity, A##arity) \
	F_CALL(D, Name, mpi_##name##_f08ts_, RULE, P##arity, A##arity)
#endif

FORTRAN_CALLS(F_ROW)
#ifdef OPEN_MPI
/* The memory is requested as TYPE(C_PTR). */
F_CALL(F, Win_allocate, mpi_win_allocate_cptr_, NOTHING, P6, A6)
F_CALL(F, Win_allocate_shared, mpi_win_allocate_shared_cptr_, NOTHING, P6, A6)
#endif

#define F_INIT(symbol, parameters, arguments) \
	void symbol(parameters); \
	void symbol(parameters) \
	{ \
		void (*next)(parameters); \
		*(void **)&next = next_call(#symbol); \
		sy_start_init(); \
		next(arguments); \
		sy_end_init(MPI_SUCCESS); \
	}
#define ONE void *a0
F_INIT(mpi_init_f08_, ONE, a0)
F_INIT(mpi_init_thread_f08_, P2, A2)
#ifdef OPEN_MPI
F_INIT(mpi_init_, ONE, a0)
F_INIT(mpi_init_thread_, P2, A2)
#endif

#define F_FINALIZE(symbol) \
	void symbol(MPI_Fint *error); \
	void symbol(MPI_Fint *error) \
	{ \
		void (*next)(MPI_Fint *); \
		*(void **)&next = next_call(#symbol); \
		sy_report(); \
		next(error); \
	}
F_FINALIZE(mpi_finalize_f08_)
#ifdef OPEN_MPI
F_FINALIZE(mpi_finalize_)
#endif
/* clang-format on */
