/* MPI_Send and so on, found before MPI's own because the library is preloaded; each calls
 * PMPI_Send. */
#include "sent_bytes.h"
#include "profile.h"

#pragma GCC visibility push(default)

/* clang-format off */
#define C_1(N, R, t0) \
	C_CALL(N, R, (t0 a0), (a0))
#define C_2(N, R, t0, t1) \
	C_CALL(N, R, (t0 a0, t1 a1), (a0, a1))
#define C_3(N, R, t0, t1, t2) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2), (a0, a1, a2))
#define C_4(N, R, t0, t1, t2, t3) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3), (a0, a1, a2, a3))
#define C_5(N, R, t0, t1, t2, t3, t4) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4), (a0, a1, a2, a3, a4))
#define C_6(N, R, t0, t1, t2, t3, t4, t5) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5), (a0, a1, a2, a3, a4, a5))
#define C_7(N, R, t0, t1, t2, t3, t4, t5, t6) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6), \
	       (a0, a1, a2, a3, a4, a5, a6))
#define C_8(N, R, t0, t1, t2, t3, t4, t5, t6, t7) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7), \
	       (a0, a1, a2, a3, a4, a5, a6, a7))
#define C_9(N, R, t0, t1, t2, t3, t4, t5, t6, t7, t8) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8), \
	       (a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define C_10(N, R, t0, t1, t2, t3, t4, t5, t6, t7, t8, t9) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9), \
	       (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define C_12(N, R, t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11) \
	C_CALL(N, R, (t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, \
	       t10 a10, t11 a11), (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))

#define C_CALL(Name, RULE, parameters, arguments) \
	int MPI_##Name parameters \
	{ \
		const struct sy_timing timing = sy_begin(); \
		const int code = PMPI_##Name arguments; \
		sy_end(timing, SY_##Name, timing.counts ? RULE(C) : SY_NO_MESSAGE); \
		return code; \
	}
#define C_ROW(arity, Name, fortran_name, RULE, ...) C_##arity(Name, RULE, __VA_ARGS__)

ALL_CALLS(C_ROW)
/* clang-format on */

int MPI_Init(int *argc, char ***argv)
{
	int code;

	sy_start_init();
	code = PMPI_Init(argc, argv);
	sy_end_init(code);
	return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int code;

	sy_start_init();
	code = PMPI_Init_thread(argc, argv, required, provided);
	sy_end_init(code);
	return code;
}

int MPI_Finalize(void)
{
	sy_report();
	return PMPI_Finalize();
}
