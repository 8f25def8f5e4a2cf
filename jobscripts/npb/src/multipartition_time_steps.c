/* The time steps, and what is compared with the official results. */
#include <math.h>
#include <stdio.h>

#include "multipartition.h"
#include "npb.h"

static void start(struct mp_grid *grid)
{
	for (int z = 0; z < grid->q; z++)
		cfd_set_initial(&grid->box[z]);
}

static void compare(struct npb_run *run, const char *what, const double *value,
		    const double *official)
{
	char name[32];

	for (int m = 0; m < CFD_FIELDS; m++) {
		snprintf(name, sizeof(name), "%s %d", what, m + 1);
		npb_check(run, name, value[m], official[m], 1e-8);
	}
}

/* After each step the root mean square of dU/dt, over all components: what the next step began
 * with, and after the last one what is verified. */
static void print_residuals(struct mp_grid *grid, const struct mp_problem *problem, double *squares)
{
	const double inner = problem->n - 2, points = inner * inner * inner;
	const double scale = 1 / (problem->dt * problem->dt);
	const int last = problem->iterations;

	npb_allreduce(grid->run, squares, last, MPI_DOUBLE, MPI_SUM);
	for (int i = 1; i < last; i++)
		npb_residual(grid->run, sqrt(squares[i] * scale / points));
	npb_residual(grid->run, sqrt(squares[last] / points));
}

/* Norms of dU/dt and of the distance to the exact solution; the sum of squares of the first. */
static double verify(struct mp_grid *grid, const struct mp_problem *problem)
{
	const int total[3] = {problem->n, problem->n, problem->n};
	double sum[2][CFD_FIELDS] = {0}, squares = 0;

	mp_exchange(grid);
	for (int z = 0; z < grid->q; z++) {
		cfd_primitives(&grid->box[z]);
		cfd_rate(&grid->box[z], 1);
		cfd_sum_rates(&grid->box[z], sum[0]);
		cfd_sum_errors(&grid->box[z], sum[1]);
	}
	npb_allreduce(grid->run, sum, 2 * CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
	for (int m = 0; m < CFD_FIELDS; m++)
		squares += sum[0][m];
	cfd_norms(total, sum[0]);
	cfd_norms(total, sum[1]);
	compare(grid->run, "residual", sum[0], problem->residual);
	compare(grid->run, "error", sum[1], problem->error);
	return squares;
}

void mp_run(struct npb_run *run, const struct mp_problem *problem, const struct mp_sizes *sizes,
	    void (*step)(struct mp_grid *grid, double dt))
{
	const int64_t inner = problem->n - 2;
	double squares[NPB_MAX_RESIDUALS] = {0};
	struct mp_grid grid = {0};

	mp_open(&grid, run, sizes);
	for (int z = 0; z < grid.q; z++)
		cfd_set_forcing(&grid.box[z]);
	start(&grid);
	step(&grid, problem->dt); /* touches all memory, untimed */
	start(&grid);
	npb_timer_start(run);
	for (int i = 0; i < npb_steps(problem->iterations); i++) {
		grid.squares = 0;
		step(&grid, problem->dt);
		squares[i] = grid.squares;
	}
	npb_timer_stop(run);
	squares[problem->iterations] = verify(&grid, problem);
	print_residuals(&grid, problem, squares);
	npb_check_work(run, 3 * problem->iterations * inner * inner * inner);
	mp_close(&grid);
}
