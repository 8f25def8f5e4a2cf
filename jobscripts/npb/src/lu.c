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
#include <stdio.h>

#include "lu.h"
#include "npb_comm.h"
#include "npb.h"

/*
 * What decides whether a run of LU is right: norms of the residual and of the error, and the
 * surface integral of the pressure (the report, sections 3.4 and 3.6).
 */

#define LIMIT 1e-8

/* Sizes and official values of NPB 3. */
static const struct lu_problem lu_problems[NPB_CLASSES] = {
    [NPB_S] = {12,
	       50,
	       0.5,
	       {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
		1.5029584435994323e-03, 3.4264073155896461e-02},
	       {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
		5.8474222595157350e-05, 1.3103347914111294e-03},
	       7.8418928865937083},
    [NPB_W] = {33,
	       300,
	       1.5e-3,
	       {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01,
		0.2826799444189e+02},
	       {0.4867877144216, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01,
		0.1084277417792e+01},
	       0.1161399311023e+02},
    [NPB_A] = {64,
	       250,
	       2,
	       {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
		1.7845301160418537e+02, 1.8384760349464247e+03},
	       {2.9964085685471943e+01, 2.8194576365003349, 7.3473412698774742, 6.7139225687777051,
		7.0715315688392578e+01},
	       2.6030925604886277e+01},
    [NPB_B] = {102,
	       250,
	       2,
	       {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
		7.7812774739425265e+02, 7.3087969592545314e+03},
	       {1.1401176380212709e+02, 8.1098963655421574, 2.8480597317698308e+01,
		2.5905394567832939e+01, 2.6054907504857413e+02},
	       4.7887162703308227e+01},
    [NPB_C] = {162,
	       250,
	       2,
	       {1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03,
		2.19194343857831427e+03, 1.78078057261061185e+04},
	       {2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01,
		4.82262643154045421e+01, 4.55902910043250358e+02},
	       6.66404553572181300e+01},
    [NPB_D] = {408,
	       300,
	       1,
	       {0.4868417937025e+05, 0.4696371050071e+04, 0.1218114549776e+05, 0.1033801493461e+05,
		0.7142398413817e+05},
	       {0.3752393004482e+03, 0.3084128893659e+02, 0.9434276905469e+02, 0.8230686681928e+02,
		0.7002620636210e+03},
	       0.8334101392503e+02},
};

static double pressure(const struct cfd_box *box, const int at[3])
{
	const ptrdiff_t p = cfd_at(box, at[0], at[1], at[2]);
	const double x = box->u[1][p], y = box->u[2][p], z = box->u[3][p];

	return CFD_C2 * (box->u[4][p] - 0.5 * (x * x + y * y + z * z) / box->u[0][p]);
}

/* The trapezoidal rule over first ... last of the grid: the weight of a local index. */
static double weight(const struct cfd_box *box, int d, int index, const int first[3],
		     const int last[3])
{
	const int place = box->first[d] + index;

	if (place < first[d] || place > last[d])
		return 0;
	return place == first[d] || place == last[d] ? 0.5 : 1;
}

/* This rank's share over the face where direction d has the given place of the grid. */
static double face(const struct cfd_box *box, int d, int place, const int first[3],
		   const int last[3])
{
	const int e = (d + 1) % 3, f = (d + 2) % 3;
	double sum = 0, w;
	int at[3];

	at[d] = place - box->first[d];
	if (at[d] < 0 || at[d] >= box->count[d])
		return 0;
	for (at[e] = 0; at[e] < box->count[e]; at[e]++) {
		for (at[f] = 0; at[f] < box->count[f]; at[f]++) {
			w = weight(box, e, at[e], first, last) * weight(box, f, at[f], first, last);
			if (w != 0)
				sum += w * pressure(box, at);
		}
	}
	return sum;
}

/* The surface integral: pressure over the six faces of a box inside the grid, by the mean of two.
 */
static double surface_integral(struct npb_run *run, const struct cfd_box *box)
{
	const int n = box->total[0], first[3] = {1, 1, 2}, last[3] = {n - 2, n - 3, n - 2};
	const double h = 1.0 / (n - 1);
	double sum = 0;

	for (int d = 0; d < 3; d++)
		sum += face(box, d, first[d], first, last) + face(box, d, last[d], first, last);
	npb_allreduce(run, &sum, 1, MPI_DOUBLE, MPI_SUM);
	return sum * h * h;
}

static void check_norms(struct npb_run *run, const struct cfd_box *box, const char *what,
			double sum[CFD_FIELDS], const double expected[CFD_FIELDS])
{
	char name[32];

	npb_allreduce(run, sum, CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
	cfd_norms(box->total, sum);
	for (int m = 0; m < CFD_FIELDS; m++) {
		snprintf(name, sizeof(name), "%s %d", what, m + 1);
		npb_check(run, name, sum[m], expected[m], LIMIT);
	}
}

/* Official values against those of the box, whose rate is L(U) - L(U*). */
static void lu_verify(struct npb_run *run, const struct cfd_box *box)
{
	const struct lu_problem *problem = &lu_problems[run->class];
	double rates[CFD_FIELDS] = {0}, errors[CFD_FIELDS] = {0};

	cfd_sum_rates(box, rates);
	check_norms(run, box, "residual", rates, problem->residual);
	cfd_sum_errors(box, errors);
	check_norms(run, box, "error", errors, problem->error);
	npb_check(run, "surface integral", surface_integral(run, box), problem->integral, LIMIT);
}

/*
 * Who has which part of the grid, and the ghosts of u. Ranks form a rectangle over x and y, x the
 * fastest; where the points cannot be shared out evenly, the first ranks have one more.
 */

/* Factors of `ranks`, the first one not above the second. */
static void lu_factors(int ranks, int factor[2])
{
	factor[0] = 1;
	while (4 * factor[0] * factor[0] <= ranks)
		factor[0] *= 2;
	factor[1] = ranks / factor[0];
}

static int neighbour(const struct lu_part *part, int x, int y)
{
	if (x < 0 || x >= part->ranks[0] || y < 0 || y >= part->ranks[1])
		return MPI_PROC_NULL;
	return y * part->ranks[0] + x;
}

static size_t longest(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void lu_open_part(struct lu_part *part, struct npb_run *run, struct cfd_box *box)
{
	const int points = lu_problems[run->class].points;
	const int total[3] = {points, points, points};
	int first[3] = {0, 0, 0}, count[3] = {points, points, points};

	part->run = run;
	lu_factors(run->ranks, part->ranks);
	part->at[0] = run->rank % part->ranks[0];
	part->at[1] = run->rank / part->ranks[0];
	for (int d = 0; d < 2; d++) {
		const int even = points / part->ranks[d], more = points % part->ranks[d];

		count[d] = even + (part->at[d] < more);
		first[d] = part->at[d] * even + (part->at[d] < more ? part->at[d] : more);
	}
	part->neighbour[LU_WEST] = neighbour(part, part->at[0] - 1, part->at[1]);
	part->neighbour[LU_EAST] = neighbour(part, part->at[0] + 1, part->at[1]);
	part->neighbour[LU_SOUTH] = neighbour(part, part->at[0], part->at[1] - 1);
	part->neighbour[LU_NORTH] = neighbour(part, part->at[0], part->at[1] + 1);
	cfd_open_box(box, total, first, count, false);
	/* One side's message: two layers of points of five components. */
	part->halo_size = longest((size_t)count[0], (size_t)count[1]) * (size_t)count[2] *
			  CFD_GHOSTS * CFD_FIELDS;
	for (int way = 0; way < 2; way++)
		part->halo[way] = npb_alloc(2 * part->halo_size, sizeof(double));
}

static void lu_close_part(struct lu_part *part)
{
	for (int way = 0; way < 2; way++)
		npb_free(part->halo[way]);
}

/* A message and layers of u beginning at index `layer` of direction d; returns its length. */
static int copy_layers(const struct cfd_box *box, int d, int layer, double *message, bool pack)
{
	const ptrdiff_t across = box->stride[d], along = box->stride[1 - d];
	double *begin = message;

	for (int m = 0; m < CFD_FIELDS; m++) {
		for (int k = 0; k < box->count[2]; k++) {
			for (int l = 0; l < CFD_GHOSTS; l++) {
				double *u = box->u[m] + k * box->stride[2] + (layer + l) * across;
				const int n = box->count[1 - d];

				for (int i = 0; pack && i < n; i++)
					message[i] = u[i * along];
				for (int i = 0; !pack && i < n; i++)
					u[i * along] = message[i];
				message += n;
			}
		}
	}
	return (int)(message - begin);
}

/* Two layers of ghosts of u on all four sides. */
static void lu_exchange_halos(struct lu_part *part, const struct cfd_box *box)
{
	for (int d = 0; d < 2; d++) {
		const int below = part->neighbour[2 * d], above = part->neighbour[2 * d + 1];
		double *out = part->halo[0], *in = part->halo[1];
		double *out_above = out + part->halo_size, *in_above = in + part->halo_size;
		int count;

		if (part->ranks[d] == 1)
			continue;
		count = copy_layers(box, d, 0, out, true);
		copy_layers(box, d, box->count[d] - CFD_GHOSTS, out_above, true);
		npb_exchange(part->run, (struct npb_neighbours){below, above},
			     (struct npb_edges){out, out_above, in, in_above}, count, MPI_DOUBLE);
		if (below != MPI_PROC_NULL)
			copy_layers(box, d, -CFD_GHOSTS, in, false);
		if (above != MPI_PROC_NULL)
			copy_layers(box, d, box->count[d], in_above, false);
	}
}

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
