/*
 * CG, "conjugate gradient" (the report, section 2.2.3, kernel CG).
 *
 * Solved: an estimate zeta of the smallest eigenvalue of a symmetric sparse matrix with random
 * places of nonzeros, by the inverse power method: in each iteration A z = x is solved
 * approximately by 25 steps of conjugate gradients, zeta = lambda + 1 / (x . z), x = z / |z|.
 *
 * Distributed: each rank has a block of rows of A and multiplies with it. The vectors stand on
 * every rank as a whole, and every rank does the same with them: that is little work beside the
 * multiplication, and spares messages.
 *
 * Communicated, per step: one MPI_Allgather of q = A p. The share of each rank in p . q travels
 * with its part of q, so that alpha, rho and beta need no message of their own. Per iteration one
 * such share more, that of |x - A z|; all of them are summed by one MPI_Allreduce at the very end.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cg.h"
#include "npb_verify.h"

enum {
	STEPS = 25,
	LANES = 8,
	PAD = 1 /* an element more in each block of a gathered vector: a share of a sum */
};

const struct cg_problem cg_problems[NPB_CLASSES] = {
    [NPB_S] = {1400, 7, 15, 10, 8.5971775078648},
    [NPB_W] = {7000, 8, 15, 12, 10.362595087124},
    [NPB_A] = {14000, 11, 15, 20, 17.130235054029},
    [NPB_B] = {75000, 13, 75, 60, 22.712745482631},
    [NPB_C] = {150000, 15, 75, 110, 28.973605592845},
    [NPB_D] = {1500000, 21, 100, 500, 52.514532105794},
};

struct solver {
	struct npb_run *run;
	int n, block; /* rows of a rank; the last ones may have fewer */
	struct cg_matrix a;
	double *x, *z, *p, *r; /* whole vectors */
	double *q;	       /* own rows, and their share of a sum behind */
	double *gathered;      /* q of all ranks */
};

NPB_VECTOR static double dot(const double *restrict a, const double *restrict b, int n)
{
	double lane[LANES] = {0}, sum = 0;
	int i = 0;

	for (; i + LANES <= n; i += LANES) {
		for (int l = 0; l < LANES; l++)
			lane[l] += a[i + l] * b[i + l];
	}
	for (; i < n; i++)
		lane[0] += a[i] * b[i];
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
}

/* to -= alpha from, one rank's part. */
NPB_VECTOR static void subtract(double alpha, const double *restrict from, double *restrict to,
				int n)
{
	for (int i = 0; i < n; i++)
		to[i] -= alpha * from[i];
}

/* z += alpha p, p = r + beta p */
NPB_VECTOR static void advance(double alpha, double beta, const double *restrict r,
			       double *restrict z, double *restrict p, int n)
{
	for (int i = 0; i < n; i++) {
		z[i] += alpha * p[i];
		p[i] = r[i] + beta * p[i];
	}
}

/* q = A p on all ranks; returns p . q, its shares summed in the order of the ranks. */
static double multiply(struct solver *s)
{
	double sum = 0;

	cg_multiply(&s->a, s->p, s->q);
	s->q[s->block] = dot(s->p + s->a.first, s->q, s->a.rows);
	npb_allgather(s->run, s->q, s->gathered, s->block + PAD, MPI_DOUBLE);
	for (int rank = 0; rank < s->run->ranks; rank++)
		sum += s->gathered[(int64_t)rank * (s->block + PAD) + s->block];
	return sum;
}

/* r -= alpha q, part by part as q was gathered. */
static void subtract_gathered(struct solver *s, double alpha)
{
	for (int rank = 0; rank < s->run->ranks; rank++) {
		const int rest = s->n - rank * s->block;

		subtract(alpha, s->gathered + (int64_t)rank * (s->block + PAD),
			 s->r + (int64_t)rank * s->block, rest < s->block ? rest : s->block);
	}
}

/* Solves A z = x from z = 0; returns the own share of |x - A z|^2. */
static double conjugate_gradient(struct solver *s)
{
	const size_t size = (size_t)s->n * sizeof(double);
	double rho = dot(s->x, s->x, s->n), before, alpha;

	memset(s->z, 0, size);
	memcpy(s->p, s->x, size);
	memcpy(s->r, s->x, size);
	for (int step = 1; step <= STEPS; step++) {
		alpha = rho / multiply(s);
		subtract_gathered(s, alpha);
		before = rho;
		rho = dot(s->r, s->r, s->n);
		advance(alpha, rho / before, s->r, s->z, s->p, s->n);
	}
	cg_multiply(&s->a, s->z, s->q);
	for (int i = 0; i < s->a.rows; i++)
		s->q[i] = s->x[s->a.first + i] - s->q[i];
	return dot(s->q, s->q, s->a.rows);
}

/* One iteration of the inverse power method: the new zeta. */
static double iterate(struct solver *s, double shift, double *residual)
{
	double zeta, scale;

	*residual = conjugate_gradient(s);
	zeta = shift + 1 / dot(s->x, s->z, s->n);
	scale = 1 / sqrt(dot(s->z, s->z, s->n));
	for (int i = 0; i < s->n; i++)
		s->x[i] = scale * s->z[i];
	return zeta;
}

static void start_vector(struct solver *s)
{
	for (int i = 0; i < s->n; i++)
		s->x[i] = 1;
}

static void open_solver(struct solver *s, struct npb_run *run)
{
	const struct cg_problem *problem = &cg_problems[run->class];
	const size_t n = (size_t)problem->n;
	int first, rows;

	s->run = run;
	s->n = problem->n;
	s->block = (int)npb_ceil_div(s->n, run->ranks);
	first = run->rank * s->block < s->n ? run->rank * s->block : s->n;
	rows = s->n - first < s->block ? s->n - first : s->block;
	cg_make_matrix(&s->a, problem, first, rows);
	s->x = npb_alloc(n, sizeof(double));
	s->p = npb_alloc(n, sizeof(double));
	s->z = npb_alloc(n, sizeof(double));
	s->r = npb_alloc(n, sizeof(double));
	s->q = npb_alloc((size_t)s->block + PAD, sizeof(double));
	s->gathered = npb_alloc((size_t)(s->block + PAD) * (size_t)run->ranks, sizeof(double));
}

static void close_solver(struct solver *s)
{
	cg_free_matrix(&s->a);
	npb_free(s->x);
	npb_free(s->p);
	npb_free(s->z);
	npb_free(s->r);
	npb_free(s->q);
	npb_free(s->gathered);
}

static void print_iterations(struct npb_run *run, const double *zeta, double *residual)
{
	if (run->rank == 0)
		printf("   iteration           ||r||                 zeta\n");
	for (int i = 0; i < run->iterations; i++) {
		npb_residual(run, sqrt(residual[i]));
		if (run->rank == 0)
			printf("    %5d      %21.14E%20.13f\n", i + 1, sqrt(residual[i]), zeta[i]);
	}
}

static void run_cg(struct npb_run *run)
{
	const struct cg_problem *problem = &cg_problems[run->class];
	const double row = problem->nonzer * (problem->nonzer + 1.0);
	double zeta[NPB_MAX_RESIDUALS], residual[NPB_MAX_RESIDUALS];
	struct solver s = {0};

	open_solver(&s, run);
	start_vector(&s);
	iterate(&s, problem->shift, residual); /* untimed, as the report allows */
	start_vector(&s);
	npb_timer_start(run);
	for (int i = 0; i < problem->iterations; i++)
		zeta[i] = iterate(&s, problem->shift, &residual[i]);
	npb_allreduce(run, residual, problem->iterations, MPI_DOUBLE, MPI_SUM);
	npb_timer_stop(run);
	/* Operations as NPB counts them. */
	run->mega_ops = 2e-6 * problem->iterations * problem->n * (3 + row + STEPS * (5 + row) + 3);
	print_iterations(run, zeta, residual);
	npb_check(run, "zeta", zeta[problem->iterations - 1], problem->zeta, 1e-10);
	close_solver(&s);
}

static void describe_cg(struct npb_run *run)
{
	run->size[0] = cg_problems[run->class].n;
	run->iterations = cg_problems[run->class].iterations;
}

static int most_ranks_cg(enum npb_class class)
{
	(void)class;
	return 1024;
}

static uint64_t memory_cg(enum npb_class class, int ranks)
{
	const struct cg_problem *p = &cg_problems[class];
	const uint64_t n = (uint64_t)p->n, row = (uint64_t)p->nonzer + 1;

	/* The own rows with their gaps; the vectors of the sum; whole vectors. */
	return n * row * row / (uint64_t)ranks * 10 + n * row * 24 +
	       n * (48 + 16 * ((n >> CG_PANEL_BITS) + 1) / (uint64_t)ranks) + (UINT64_C(8) << 20);
}

const struct npb_kernel npb_kernel = {
    .name = "CG",
    .operations = "floating point",
    .rule = NPB_POWER_OF_TWO,
    .most_ranks = most_ranks_cg,
    .memory_bytes = memory_cg,
    .describe = describe_cg,
    .run = run_cg,
};
