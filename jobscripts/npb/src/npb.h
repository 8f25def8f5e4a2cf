/*
 * What the NAS Parallel Benchmarks written here have in common: the problem classes, one run's
 * state, and what a kernel must bring. Specified in D. Bailey et al., "The NAS Parallel
 * Benchmarks", RNR-94-007 (March 1994), called "the report" in all files beside this one; the
 * sizes of the later classes are those of NAS-95-020 and of NPB 3.
 */
#ifndef NPB_H
#define NPB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "npb_vectors.h"

/* In the order of size, which is not that of the alphabet. */
enum npb_class { NPB_S, NPB_W, NPB_A, NPB_B, NPB_C, NPB_D, NPB_CLASSES };

enum npb_rank_rule {
	NPB_POWER_OF_TWO,
	NPB_SQUARE,
};

/* Most figures that one verification compares, and most iterations whose residual is kept. */
enum { NPB_MAX_CHECKS = 64, NPB_MAX_RESIDUALS = 512 };

/* One figure compared with its official value; what decides is error <= limit. */
struct npb_check {
	char name[32];
	double value, expected;
	double error; /* |value - expected| / |expected| */
	double limit;
	bool passed;
};

/* One run of one kernel, as the ranks see it. */
struct npb_run {
	enum npb_class class;
	char class_name; /* 'S' ... 'D' */
	int rank, ranks;
	MPI_Comm comm;
	struct npb_vectors vectors; /* the narrowest of all ranks */

	/* Set by the kernel; those of rank 0 are printed. */
	int64_t size[3]; /* size[1] == 0: one figure only */
	int iterations;
	double seconds;	  /* wall clock of the timed part on this rank; printed: the slowest */
	double mega_ops;  /* millions of operations of the timed part, as the report counts them */
	double compute_s; /* seconds less what was spent in MPI calls */
	int checks;	  /* none at all counts as a failure */
	int failed_checks;
	struct npb_check check[NPB_MAX_CHECKS];
	int residuals;
	double residual[NPB_MAX_RESIDUALS]; /* one per iteration, where the kernel has one */
};

/* What a kernel is; each program links exactly one. */
struct npb_kernel {
	const char *name;	/* "CG" */
	const char *operations; /* what is counted, "floating point" */
	enum npb_rank_rule rule;
	bool narrow; /* no loop of the timed part is compiled for wide vectors */
	/* Most ranks that a class can be shared out to. */
	int (*most_ranks)(enum npb_class class);
	/* Memory of one rank, bytes; an upper estimate. */
	uint64_t (*memory_bytes)(enum npb_class class, int ranks);
	/* Sets run->size and run->iterations, which the heading tells. */
	void (*describe)(struct npb_run *run);
	void (*run)(struct npb_run *run);
};

extern const struct npb_kernel npb_kernel;

#endif
