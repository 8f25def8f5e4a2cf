/*
 * LU, "lower-upper" (the report, section 3.4.2): the simulated CFD application of chapter 3 (see
 * cfd.h) by symmetric successive over-relaxation.
 *
 * Solved: the steady state of dU/dt = L(U) - L(U*), by pseudo-time steps. Each solves, with the
 * block matrix D + Y + Z of the linearised implicit step (Y: the points before, Z: those after),
 *   (D + omega Y) v1 = dt (L(U) - L(U*)),   (D + omega Z) v = D v1,   U += v / (omega (2 - omega))
 * one plane of z after the other, up and down again; lu_sweep.c explains how.
 *
 * Distributed: a rectangle of x and y per rank, all of z.
 *
 * Communicated, per step: two layers of U with each of four neighbours before L(U) is computed;
 * and in the sweeps, for each plane of z, what the points at the border add to those behind
 * it, five numbers for each: from west and south in the lower sweep, from east and north in the
 * upper one. So the sweeps go over the ranks as a wave front.
 */
#include <math.h>

#include "lu.h"
#include "npb_comm.h"
#include "npb.h"

struct solver {
	struct lu_part part;
	struct cfd_box box;
	struct lu_sweep sweep;
	double step;
	/* Of dt (L(U) - L(U*)), before each iteration: sums of this rank. */
	double squares[NPB_MAX_RESIDUALS];
};

/* Velocity, pressure ... of one plane of z: a box that is one plane high. */
static void plane_primitives(const struct cfd_box *box, int k)
{
	const ptrdiff_t at = k * box->stride[2];
	struct cfd_box plane = *box;

	plane.first[2] = 0;
	plane.total[2] = plane.count[2] = 1;
	for (int m = 0; m < CFD_FIELDS; m++)
		plane.u[m] += at;
	plane.inverse += at;
	for (int d = 0; d < 3; d++)
		plane.speed[d] += at;
	plane.kinetic += at;
	plane.pressure += at;
	cfd_primitives(&plane);
}

/* dt L(U) of inner plane k; the planes beside it are needed for it. */
static void prepare_plane(struct solver *s, int k)
{
	const struct cfd_box *box = &s->box;
	const int plane = box->low[2] + k;

	plane_primitives(box, plane + 1);
	for (int j = box->low[1]; j < box->high[1]; j++)
		cfd_rate_row(box, j, plane, s->step);
	lu_load_plane(&s->sweep, box, k);
}

static void receive(struct solver *s, enum lu_side side)
{
	npb_receive(s->part.run, s->sweep.border[side], s->part.neighbour[side],
		    s->sweep.n[side < LU_SOUTH] * CFD_FIELDS, MPI_DOUBLE);
}

static void send(struct solver *s, enum lu_side side)
{
	npb_send(s->part.run, s->sweep.border[side], s->part.neighbour[side],
		 s->sweep.n[side < LU_SOUTH] * CFD_FIELDS, MPI_DOUBLE);
}

static void lower(struct solver *s)
{
	lu_begin_sweep(&s->sweep);
	plane_primitives(&s->box, 0);
	plane_primitives(&s->box, 1);
	for (int k = 0; k < s->sweep.n[2]; k++) {
		prepare_plane(s, k);
		receive(s, LU_WEST);
		receive(s, LU_SOUTH);
		lu_sweep_lower(&s->sweep, k);
		npb_worked((int64_t)s->sweep.n[0] * s->sweep.n[1]);
		send(s, LU_EAST);
		send(s, LU_NORTH);
	}
}

static void upper(struct solver *s)
{
	lu_begin_sweep(&s->sweep);
	for (int k = s->sweep.n[2] - 1; k >= 0; k--) {
		receive(s, LU_EAST);
		receive(s, LU_NORTH);
		lu_sweep_upper(&s->sweep, k);
		npb_worked((int64_t)s->sweep.n[0] * s->sweep.n[1]);
		send(s, LU_WEST);
		send(s, LU_SOUTH);
		lu_store_plane(&s->sweep, &s->box, k);
	}
}

/* Leaves the sum of the squares of dt L(U) of the U that it began with. */
static void iterate(struct solver *s, double *squares)
{
	lu_exchange_halos(&s->part, &s->box);
	lower(s);
	*squares = lu_take_squares(&s->sweep);
	upper(s);
}

/* After each iteration: the root mean square of L(U) - L(U*), over all components. */
static void print_residuals(struct npb_run *run, struct solver *s, double last)
{
	const double inner = s->box.total[0] - 2, points = inner * inner * inner;

	for (int i = 1; i < run->iterations; i++)
		s->squares[i - 1] = s->squares[i] / (s->step * s->step);
	s->squares[run->iterations - 1] = last;
	npb_allreduce(run, s->squares, run->iterations, MPI_DOUBLE, MPI_SUM);
	for (int i = 0; i < run->iterations; i++)
		npb_residual(run, sqrt(s->squares[i] / points));
}

/* As NPB counts them, for n points in each direction. */
static double mega_operations(double n, int iterations)
{
	return 1e-6 * iterations * (((1984.77 * n - 10923.3) * n + 27770.9) * n - 144010);
}

/* Each is solved once in each sweep. */
static int64_t inner_points(int64_t n)
{
	return (n - 2) * (n - 2) * (n - 2);
}

static void run_lu(struct npb_run *run)
{
	const struct lu_problem *problem = &lu_problems[run->class];
	struct solver s = {.step = problem->step};
	double rates[CFD_FIELDS] = {0}, last = 0;

	lu_open_part(&s.part, run, &s.box);
	lu_open_sweep(&s.sweep, &s.box, s.step);
	cfd_set_forcing(&s.box);
	cfd_set_initial(&s.box);
	iterate(&s, s.squares); /* untimed, as the report allows */
	cfd_set_initial(&s.box);
	npb_timer_start(run);
	for (int i = 0; i < npb_steps(problem->iterations); i++)
		iterate(&s, &s.squares[i]);
	lu_exchange_halos(&s.part, &s.box);
	cfd_primitives(&s.box);
	cfd_rate(&s.box, 1);
	npb_timer_stop(run);
	run->mega_ops = mega_operations(problem->points, problem->iterations);
	cfd_sum_rates(&s.box, rates);
	for (int m = 0; m < CFD_FIELDS; m++)
		last += rates[m];
	print_residuals(run, &s, last);
	lu_verify(run, &s.box);
	npb_check_work(run, 2 * problem->iterations * inner_points(problem->points));
	lu_close_sweep(&s.sweep);
	cfd_close_box(&s.box);
	lu_close_part(&s.part);
}

static void describe_lu(struct npb_run *run)
{
	for (int d = 0; d < 3; d++)
		run->size[d] = lu_problems[run->class].points;
	run->iterations = lu_problems[run->class].iterations;
}

/* Every rank must have the ghosts of its neighbours, and inner points. */
static int most_ranks_lu(enum npb_class class)
{
	int most = 1, factor[2];

	for (int ranks = 1; ranks <= 65536; ranks *= 2) {
		lu_factors(ranks, factor);
		if (lu_problems[class].points / factor[1] >= CFD_GHOSTS)
			most = ranks;
	}
	return most;
}

static uint64_t memory_lu(enum npb_class class, int ranks)
{
	const int n = lu_problems[class].points;
	int factor[2], count[3] = {0, 0, n};
	uint64_t points = (uint64_t)n, halo;

	lu_factors(ranks, factor);
	for (int d = 0; d < 2; d++) {
		count[d] = (int)npb_ceil_div(n, factor[d]);
		points *= (uint64_t)count[d] + 8; /* rounded up to cache lines */
	}
	halo = (uint64_t)count[0] * (uint64_t)n * CFD_GHOSTS * CFD_FIELDS * 4;
	return cfd_box_bytes(count, false) + (points * LU_VALUES + halo) * sizeof(double) +
	       (UINT64_C(4) << 20);
}

const struct npb_kernel npb_kernel = {
    .name = "LU",
    .operations = "floating point",
    .rule = NPB_POWER_OF_TWO,
    .most_ranks = most_ranks_lu,
    .memory_bytes = memory_lu,
    .describe = describe_lu,
    .run = run_lu,
};
