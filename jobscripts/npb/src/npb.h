/*
 * What the NAS Parallel Benchmarks written here have in common: the problem classes, one run's
 * state, and what a kernel must bring. Specified in D. Bailey et al., "The NAS Parallel
 * Benchmarks", RNR-94-007 (March 1994), called "the report" in all files beside this one; the
 * sizes of the later classes are those of NAS-95-020 and of NPB 3.
 */
#ifndef NPB_H
#define NPB_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h> /* and __GLIBC__, below */

/*
 * Which vectors the processor lets the loops use that are compiled for several (NPB_VECTOR): a
 * machine that hides AVX, as some virtual ones do, computes the same more slowly.
 */

struct npb_vectors {
	char level[16]; /* as GCC names it: "x86-64-v4"; "compiled": there was no choice */
	int bits;	/* width of a register; 0: not known, or not used */
};

/*
 * A loop that gains from wide vectors is compiled three times and the machine's own version picked
 * when the program starts (npb_vectors names it), so that one build is fast everywhere. No
 * version fuses multiplications with additions (-ffp-contract=off): results do not depend on the
 * machine.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&       \
    !defined(NPB_NO_CLONES)
#if __GNUC__ >= 12
#define NPB_CLONES
#define NPB_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef NPB_VECTOR
#define NPB_VECTOR
#endif
/* For helpers of such loops: they must become part of each version. */
#define NPB_INLINE static inline __attribute__((always_inline))

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
	/* Sets run->size and run->iterations, which the heading prints. */
	void (*describe)(struct npb_run *run);
	void (*run)(struct npb_run *run);
};

extern const struct npb_kernel npb_kernel;

/*
 * Is there memory for the class, before anything is allocated: a node that begins to swap, or
 * whose ranks are killed one by one, gives no reason.
 */

/* On all ranks the same answer: true, or false with the line of the fullest node. */
bool npb_check_memory(const struct npb_kernel *kernel, const struct npb_run *run, char *message,
		      size_t size);

/*
 * The command line of every kernel: npb-cg --class A [--json FILE].
 */

struct npb_options {
	enum npb_class class;
	const char *json; /* NULL: none asked for */
	bool help, version;
};

/* True, or false with one line in `message`: what was expected, what was found. */
bool npb_parse_options(int argc, char **argv, struct npb_options *options, char *message,
		       size_t size);
/* Whether the kernel runs with so many ranks; else false and the line. */
bool npb_check_ranks(const struct npb_kernel *kernel, enum npb_class class, int ranks,
		     char *message, size_t size);
/* 'S', 'W' ... */
char npb_class_name(enum npb_class class);

/*
 * The pseudorandom numbers of the report, section 2.3: x(k+1) = a x(k) mod 2^46 with a = 5^13,
 * and r(k) = 2^-46 x(k) in (0, 1). Whole numbers all the way: 64-bit products may overflow, as
 * only their lowest 46 bits count, and r(k) is exact in a double.
 */

#define NPB_MULTIPLIER UINT64_C(1220703125) /* 5^13 */
#define NPB_MASK       ((UINT64_C(1) << 46) - 1)

/* The next number of the sequence with the multiplier a. */
NPB_INLINE uint64_t npb_step(uint64_t a, uint64_t x)
{
	return a * x & NPB_MASK;
}

/* r = 2^-46 x */
NPB_INLINE double npb_uniform(uint64_t x)
{
	return (double)(int64_t)x * 0x1p-46;
}

/* a^n mod 2^46, by squaring (section 2.3, "jump-ahead"). */
uint64_t npb_power(uint64_t a, uint64_t n);

/* The seed n steps after `seed`. */
uint64_t npb_jump(uint64_t seed, uint64_t n);

/* out[i] = r of the (i+1)-th number after *seed, for count numbers; *seed moves on by count. */
void npb_fill_uniform(uint64_t *seed, double *restrict out, size_t count);

/*
 * Comparing figures with their official values, and memory.
 */

/* |value - expected| / |expected| <= limit; false for NaN. Writes the comparison down. */
bool npb_check(struct npb_run *run, const char *name, double value, double expected, double limit);

/* The same for complex numbers: distance from the official one over its modulus. */
bool npb_check_complex(struct npb_run *run, const char *name, const double value[2],
		       const double expected[2], double limit);

/* Adds to the residuals of the run, for the report in JSON. */
void npb_residual(struct npb_run *run, double residual);

/* Zeroed memory, aligned to 64 bytes; ends the program with one line and code 2 without it. */
void *npb_alloc(size_t count, size_t bytes);
void npb_free(void *memory);
/* The number of allocations that are not freed. */
long npb_count_allocations(void);

/* a / b, rounded up. */
NPB_INLINE int64_t npb_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

#endif
