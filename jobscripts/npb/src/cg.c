/*
 * CG, "conjugate gradient" (the report, section 2.2.3, kernel CG).
 *
 * Solved: an estimate zeta of the smallest eigenvalue of a symmetric sparse matrix with random
 * places of nonzeros, by the inverse power method: in each iteration A z = x is solved
 * approximately by 25 steps of conjugate gradients, zeta = lambda + 1 / (x . z), x = z / |z|.
 *
 * Distribution and communication: see cg_gradient.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cg.h"
#include "npb.h"

const struct cg_problem cg_problems[NPB_CLASSES] = {
    [NPB_S] = {1400, 7, 15, 10, 8.5971775078648},
    [NPB_W] = {7000, 8, 15, 12, 10.362595087124},
    [NPB_A] = {14000, 11, 15, 20, 17.130235054029},
    [NPB_B] = {75000, 13, 75, 60, 22.712745482631},
    [NPB_C] = {150000, 15, 75, 110, 28.973605592845},
    [NPB_D] = {1500000, 21, 100, 500, 52.514532105794},
};

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
