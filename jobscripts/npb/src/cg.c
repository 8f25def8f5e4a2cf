/*
 * CG, "conjugate gradient" (the report, section 2.2.3, kernel CG).
 *
 * Solved: an estimate zeta of the smallest eigenvalue of a symmetric sparse matrix with random
 * places of nonzeros, by the inverse power method: in each iteration A z = x is solved
 * approximately by 25 steps of conjugate gradients, zeta = lambda + 1 / (x . z), x = z / |z|.
 *
 * Distributed: each rank has a block of rows of A and, of the vectors z, r and q, the elements of
 * these rows; the vector p that A is multiplied with stands on every rank as a whole.
 *
 * Communicated, per step: one MPI_Allreduce of p . q; and one MPI_Allgather of the new r, with
 * which every rank makes the new p. The share of each rank in rho = r . r travels with its part of
 * r, so that rho needs no message of its own. After the last step z is gathered instead: all of
 * |x - A z|, x . z and the next x follow from it.
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
	double *x, *p;	   /* whole vectors */
	double *z, *q, *r; /* own rows; r and z with their share of a sum behind, for gathering */
	double *gathered;
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

/* z += alpha p, r -= alpha q; returns r . r */
NPB_VECTOR static double advance(double alpha, const double *restrict p, const double *restrict q,
				 double *restrict z, double *restrict r, int n)
{
	for (int i = 0; i < n; i++) {
		z[i] += alpha * p[i];
		r[i] -= alpha * q[i];
	}
	return dot(r, r, n);
}

/* Everybody's part of a vector; returns the sum of the shares, in the order of the ranks. */
static double gather(struct solver *s, double *part, double share)
{
	double sum = 0;

	part[s->block] = share;
	npb_allgather(s->run, part, s->gathered, s->block + PAD, MPI_DOUBLE);
	for (int q = 0; q < s->run->ranks; q++)
		sum += s->gathered[(int64_t)q * (s->block + PAD) + s->block];
	return sum;
}

/* out = gathered + beta out, whole vectors; the padding of the gathered one is left out. */
NPB_VECTOR static void add_gathered(const struct solver *s, double beta, double *restrict out)
{
	for (int q = 0; q < s->run->ranks; q++) {
		const double *restrict from = s->gathered + (int64_t)q * (s->block + PAD);
		double *restrict to = out + (int64_t)q * s->block;
		const int rest = s->n - q * s->block, count = rest < s->block ? rest : s->block;

		for (int i = 0; i < count; i++)
			to[i] = from[i] + beta * to[i];
	}
}

/*
 * Solves A z = x from z = 0, leaving z as a whole vector in p; returns the own share of
 * |x - A z|^2.
 */
static double conjugate_gradient(struct solver *s)
{
	const int rows = s->a.rows, first = s->a.first;
	double rho = dot(s->x, s->x, s->n), before, alpha;

	memset(s->z, 0, (size_t)s->block * sizeof(*s->z));
	memcpy(s->p, s->x, (size_t)s->n * sizeof(*s->p));
	memcpy(s->r, s->x + first, (size_t)rows * sizeof(*s->r));
	for (int step = 1; step <= STEPS; step++) {
		cg_multiply(&s->a, s->p, s->q);
		alpha = dot(s->p + first, s->q, rows);
		npb_allreduce(s->run, &alpha, 1, MPI_DOUBLE, MPI_SUM);
		alpha = rho / alpha;
		before = rho;
		rho = advance(alpha, s->p + first, s->q, s->z, s->r, rows);
		if (step == STEPS)
			break;
		rho = gather(s, s->r, rho);
		add_gathered(s, rho / before, s->p);
	}
	gather(s, s->z, 0);
	add_gathered(s, 0, s->p);
	cg_multiply(&s->a, s->p, s->q);
	for (int i = 0; i < rows; i++)
		s->q[i] = s->x[first + i] - s->q[i];
	return dot(s->q, s->q, rows);
}

/* One iteration of the inverse power method: the new zeta. */
static double iterate(struct solver *s, double shift, double *residual)
{
	double zeta, scale;

	*residual = conjugate_gradient(s);
	zeta = shift + 1 / dot(s->x, s->p, s->n);
	scale = 1 / sqrt(dot(s->p, s->p, s->n));
	for (int i = 0; i < s->n; i++)
		s->x[i] = scale * s->p[i];
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
	s->z = npb_alloc((size_t)s->block + PAD, sizeof(double));
	s->r = npb_alloc((size_t)s->block + PAD, sizeof(double));
	s->q = npb_alloc((size_t)s->block, sizeof(double));
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
	       n * (40 + 16 * ((n >> CG_PANEL_BITS) + 1) / (uint64_t)ranks) + (UINT64_C(8) << 20);
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
