/*
 * CG, "conjugate gradient" (the report, section 2.2.3, kernel CG).
 *
 * Solved: an estimate zeta of the smallest eigenvalue of a symmetric sparse matrix with random
 * places of nonzeros, by the inverse power method: in each iteration A z = x is solved
 * approximately by 25 steps of conjugate gradients, zeta = lambda + 1 / (x . z), x = z / |z|.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cg.h"
#include "npb.h"

/* Steps of conjugate gradients in each iteration. */
enum { CG_STEPS = 25 };

struct cg_solver {
	struct npb_run *run;
	struct cg_matrix a;
	int n; /* elements of the vectors, from that of the matrix' first column on */
	double *x, *z, *p, *r; /* elements of the rank's columns */
	double *q;	       /* A p, of the rank's columns */
	/* The position in a grid of rows x columns ranks; sums of the rank's rows; a message. */
	int rows, columns, row, column;
	double *w, *received;
};

static const struct cg_problem cg_problems[NPB_CLASSES] = {
    [NPB_S] = {1400, 7, 15, 10, 8.5971775078648},
    [NPB_W] = {7000, 8, 15, 12, 10.362595087124},
    [NPB_A] = {14000, 11, 15, 20, 17.130235054029},
    [NPB_B] = {75000, 13, 75, 60, 22.712745482631},
    [NPB_C] = {150000, 15, 75, 110, 28.973605592845},
    [NPB_D] = {1500000, 21, 100, 500, 52.514532105794},
};

/* The loops over the vectors of CG. */

enum { LANES = 8 };

NPB_VECTOR static double cg_dot(const double *restrict a, const double *restrict b, int n)
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

/* to -= alpha from */
NPB_VECTOR static void cg_subtract(double alpha, const double *restrict from, double *restrict to,
				   int n)
{
	for (int i = 0; i < n; i++)
		to[i] -= alpha * from[i];
}

/* z += alpha p, p = r + beta p */
NPB_VECTOR static void cg_advance(double alpha, double beta, const double *restrict r,
				  double *restrict z, double *restrict p, int n)
{
	for (int i = 0; i < n; i++) {
		z[i] += alpha * p[i];
		p[i] = r[i] + beta * p[i];
	}
}

/*
 * The conjugate gradients of CG, with as many messages as NASA's program. The matrix is cut both
 * ways: C columns of ranks, a power of two, by C or C / 2 rows of them, column the fastest. Of a
 * vector each rank holds the elements of its columns.
 *
 * Communicated, per step, always two ranks with each other: the parts of A p are summed along a
 * row of ranks in log2 C exchanges; what a rank then has of the sum it exchanges with the rank
 * whose columns those rows are (with itself on the diagonal); and p . q and the new r . r are
 * summed by log2 C exchanges of one number each.
 */

/* Where piece i of `columns` pieces of a vector begins. */
static int piece(const struct cg_solver *s, int n, int i)
{
	return (int)((int64_t)n * i / s->columns);
}

/* The part of the matrix and the vectors of this rank. */
static void cg_open_part(struct cg_solver *s, const struct cg_problem *problem)
{
	const int n = problem->n;
	int each;

	for (s->columns = 1; s->columns * s->columns < s->run->ranks; s->columns *= 2)
		;
	s->rows = s->run->ranks / s->columns;
	s->row = s->run->rank / s->columns;
	s->column = s->run->rank % s->columns;
	each = s->columns / s->rows; /* pieces of a row of ranks: 1 or 2 */
	s->a.first = piece(s, n, s->row * each);
	s->a.rows = piece(s, n, (s->row + 1) * each) - s->a.first;
	s->a.first_column = piece(s, n, s->column);
	s->n = s->a.columns = piece(s, n, s->column + 1) - s->a.first_column;
	s->w = npb_alloc((size_t)s->a.rows, sizeof(double));
	s->received = npb_alloc((size_t)s->a.rows, sizeof(double));
	s->q = npb_alloc((size_t)s->n, sizeof(double));
}

static int in_my_row(const struct cg_solver *s, int column)
{
	return s->row * s->columns + column;
}

/* Sums over the ranks that share a row of the grid: all columns once. */
static void cg_sum(struct cg_solver *s, double *sums, int count)
{
	double theirs[2];

	for (int distance = s->columns / 2; distance > 0; distance /= 2) {
		npb_swap(s->run, in_my_row(s, s->column ^ distance),
			 (struct npb_message){sums, count}, (struct npb_message){theirs, count});
		for (int i = 0; i < count; i++)
			sums[i] += theirs[i];
	}
}

static void add(double *restrict to, const double *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += from[i];
}

/* With two pieces to a row of ranks, the even ranks go on with the first, the odd ones with the
 * second: the neighbour's is sent to it. */
static struct npb_message share_pieces(struct cg_solver *s)
{
	const int half = piece(s, cg_problems[s->run->class].n, 2 * s->row + 1) - s->a.first;
	struct npb_message parts[2] = {{s->w, half}, {s->w + half, s->a.rows - half}};
	struct npb_message mine = parts[s->column % 2];

	npb_swap(s->run, in_my_row(s, s->column ^ 1), parts[1 - s->column % 2],
		 (struct npb_message){s->received, mine.count});
	add(mine.data, s->received, mine.count);
	return mine;
}

/* to = A from, for the own columns. */
static void multiply(struct cg_solver *s, const double *from, double *to)
{
	struct npb_message sum = {s->w, s->a.rows};
	int distance = 1, partner = s->column * s->columns + s->row;

	cg_multiply(&s->a, from, s->w);
	if (s->rows < s->columns) {
		sum = share_pieces(s);
		distance = 2;
		partner = s->column / 2 * s->columns + 2 * s->row + s->column % 2;
	}
	for (; distance < s->columns; distance *= 2) {
		npb_swap(s->run, in_my_row(s, s->column ^ distance), sum,
			 (struct npb_message){s->received, sum.count});
		add(sum.data, s->received, sum.count);
	}
	if (s->columns == 1)
		memcpy(to, sum.data, (size_t)s->n * sizeof(double));
	else
		npb_swap(s->run, partner, sum, (struct npb_message){to, s->n});
}

static double sum_dot(struct cg_solver *s, const double *a, const double *b)
{
	double sum = cg_dot(a, b, s->n);

	cg_sum(s, &sum, 1);
	return sum;
}

/* Solves A z = x from z = 0; returns |x - A z|^2. */
static double cg_solve(struct cg_solver *s)
{
	const size_t size = (size_t)s->n * sizeof(double);
	double rho, before, alpha;

	memset(s->z, 0, size);
	memcpy(s->p, s->x, size);
	memcpy(s->r, s->x, size);
	rho = sum_dot(s, s->r, s->r);
	for (int step = 1; step <= npb_steps(CG_STEPS); step++) {
		multiply(s, s->p, s->q);
		alpha = rho / sum_dot(s, s->p, s->q);
		cg_subtract(alpha, s->q, s->r, s->n);
		before = rho;
		rho = sum_dot(s, s->r, s->r);
		cg_advance(alpha, rho / before, s->r, s->z, s->p, s->n);
	}
	multiply(s, s->z, s->q);
	for (int i = 0; i < s->n; i++)
		s->r[i] = s->x[i] - s->q[i];
	return sum_dot(s, s->r, s->r);
}

/* One iteration of the inverse power method: the new zeta. */
static double iterate(struct cg_solver *s, double shift, double *residual)
{
	double sums[2], scale;

	*residual = cg_solve(s);
	sums[0] = cg_dot(s->x, s->z, s->n);
	sums[1] = cg_dot(s->z, s->z, s->n);
	cg_sum(s, sums, 2);
	scale = 1 / sqrt(sums[1]);
	for (int i = 0; i < s->n; i++)
		s->x[i] = scale * s->z[i];
	return shift + 1 / sums[0];
}

static void start_vector(struct cg_solver *s)
{
	for (int i = 0; i < s->n; i++)
		s->x[i] = 1;
}

static void open_solver(struct cg_solver *s, struct npb_run *run)
{
	const struct cg_problem *problem = &cg_problems[run->class];

	s->run = run;
	cg_open_part(s, problem);
	cg_make_matrix(&s->a, problem);
	s->x = npb_alloc((size_t)s->n, sizeof(double));
	s->p = npb_alloc((size_t)s->n, sizeof(double));
	s->z = npb_alloc((size_t)s->n, sizeof(double));
	s->r = npb_alloc((size_t)s->n, sizeof(double));
}

static void close_solver(struct cg_solver *s)
{
	cg_free_matrix(&s->a);
	npb_free(s->x);
	npb_free(s->p);
	npb_free(s->z);
	npb_free(s->r);
	npb_free(s->q);
	npb_free(s->w);
	npb_free(s->received);
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

/* Of the matrix, those that are 0 too: what a multiplication goes through. */
static int64_t elements(int64_t n)
{
	return n * n;
}

static void run_cg(struct npb_run *run)
{
	const struct cg_problem *problem = &cg_problems[run->class];
	const double row = problem->nonzer * (problem->nonzer + 1.0);
	double zeta[NPB_MAX_RESIDUALS], residual[NPB_MAX_RESIDUALS];
	struct cg_solver s = {0};

	open_solver(&s, run);
	start_vector(&s);
	iterate(&s, problem->shift, residual); /* untimed, as the report allows */
	start_vector(&s);
	npb_timer_start(run);
	for (int i = 0; i < problem->iterations; i++)
		zeta[i] = iterate(&s, problem->shift, &residual[i]);
	npb_timer_stop(run);
	/* Operations as NPB counts them. */
	run->mega_ops =
	    2e-6 * problem->iterations * problem->n * (3 + row + CG_STEPS * (5 + row) + 3);
	print_iterations(run, zeta, residual);
	npb_check(run, "zeta", zeta[problem->iterations - 1], problem->zeta, 1e-10);
	npb_check_work(run, elements(problem->n) * (CG_STEPS + 1) * problem->iterations);
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

	/* The rank's rows with their gaps; the vectors of the sum; the solver's vectors, at most
	 * whole. */
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
