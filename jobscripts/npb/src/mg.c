/*
 * MG, "multigrid" (the report, section 2.2.2, kernel MG).
 *
 * Solved: the discrete Poisson problem A u = v on a periodic grid of n^3 points, by V-cycles. v is
 * zero but for ten points +1 and ten points -1. A cycle M goes down, r(k-1) = P r(k), to a grid of
 * 2^3 points, where u = S r, and up again: u(k) += Q u(k-1), r(k) -= A u(k), u(k) += S r(k).
 * A, S, P and Q are stencils of 27 points whose coefficients depend on the distance only. Wanted:
 * the root mean square of r = v - A u after the last cycle.
 *
 * Distribution and communication: see mg_grids.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mg_grids.h"
#include "npb.h"

/* The right side of MG: random numbers for all points, x fastest; only the extremes matter. */

#define SEED UINT64_C(314159265)

struct candidate {
	double value; /* negated for the smallest, so that both search for the largest */
	int64_t point;
};

/* Sorted, the largest first; a value of 0 is below all of them, as -2 does for the negated. */
static void insert(struct candidate *best, struct candidate new)
{
	int i = MG_CHARGES - 1;

	if (new.value <= best[i].value)
		return;
	for (; i > 0 && best[i - 1].value < new.value; i--)
		best[i] = best[i - 1];
	best[i] = new;
}

static void search_row(const double *value, int n, int64_t first, struct candidate *largest,
		       struct candidate *smallest)
{
	for (int x = 0; x < n; x++) {
		if (value[x] > largest[MG_CHARGES - 1].value)
			insert(largest, (struct candidate){value[x], first + x});
		if (-value[x] > smallest[MG_CHARGES - 1].value)
			insert(smallest, (struct candidate){-value[x], first + x});
	}
}

static void search(const struct mg_level *l, struct candidate *largest, struct candidate *smallest)
{
	double *value = npb_alloc((size_t)l->nx, sizeof(double));

	for (int z = 0; z < l->nz; z++) {
		int64_t first = ((int64_t)(l->z0 + z) * l->n + l->y0) * l->n + l->x0;

		for (int y = 0; y < l->ny; y++, first += l->n) {
			uint64_t seed = npb_jump(SEED, (uint64_t)first);

			npb_fill_uniform(&seed, value, (size_t)l->nx);
			search_row(value, l->nx, first, largest, smallest);
		}
	}
	npb_free(value);
}

/* The best of all ranks, on all ranks, as NASA's program does it: one after the other, by the value
 * and by its place. */
static void merge(struct npb_run *run, struct candidate *best)
{
	struct candidate all[MG_CHARGES];
	int next = 0;

	for (int i = 0; i < MG_CHARGES; i++) {
		double top = best[next].value;
		int64_t point[2] = {-1, -1};
		const struct candidate mine = best[next];

		npb_allreduce(run, &top, 1, MPI_DOUBLE, MPI_MAX);
		if (mine.value >= top) {
			point[0] = mine.point;
			next++;
		}
		npb_allreduce(run, point, 2, MPI_INT64_T, MPI_MAX);
		all[i] = (struct candidate){top, point[0]};
	}
	memcpy(best, all, sizeof(all));
}

/* A point may be seen up to three times in a direction: the grid is periodic. */
static void set_point(struct mg_level *l, int64_t point, double charge)
{
	const int n = l->n, x = (int)(point % n), y = (int)(point / n % n);
	const int z = (int)(point / n / n);

	for (int iz = z - l->z0 - n; iz < l->nz + 1; iz += n) {
		for (int iy = y - l->y0 - n; iy < l->ny + 1; iy += n) {
			if (iz < -1 || iy < -1)
				continue;
			for (int ix = x - l->x0 - n; ix <= l->nx; ix += n) {
				if (ix >= -1)
					mg_row(&l->r, iz, iy)[ix] = charge;
			}
		}
	}
}

/* v = +1 at the ten largest of n^3 random numbers, -1 at the ten smallest. */
static void mg_place_charges(struct mg_grids *g)
{
	struct candidate largest[MG_CHARGES], smallest[MG_CHARGES];
	struct mg_level *l = &g->level[g->finest];

	for (int i = 0; i < MG_CHARGES; i++)
		largest[i] = smallest[i] = (struct candidate){-2, 0};
	search(l, largest, smallest);
	merge(g->run, largest);
	merge(g->run, smallest);
	for (int i = 0; i < MG_CHARGES; i++) {
		set_point(l, smallest[i].point, -1);
		set_point(l, largest[i].point, 1);
	}
	mg_fill(g, l, &l->r);
}

static const struct {
	int finest, iterations;
	double norm; /* official, limit 1e-8 */
} problems[NPB_CLASSES] = {
    [NPB_S] = {5, 4, 0.5307707005734e-4},  [NPB_W] = {7, 4, 0.6467329375339e-5},
    [NPB_A] = {8, 4, 0.2433365309069e-5},  [NPB_B] = {8, 20, 0.1800564401355e-5},
    [NPB_C] = {9, 20, 0.5706732285740e-6}, [NPB_D] = {10, 50, 0.1583275060440e-9},
};

static void set_operators(struct mg_grids *g, enum npb_class class)
{
	const double a[4] = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};
	/* The smoother S(a) up to class A, S(b) beyond. */
	const double small[4] = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
	const double large[4] = {-3.0 / 17, 1.0 / 33, -1.0 / 61, 0};

	memcpy(g->a, a, sizeof(a));
	memcpy(g->c, class <= NPB_A ? small : large, sizeof(small));
	if (npb_planted("coefficient"))
		g->c[0] *= 1 + 1e-4;
}

static void clear_solution(struct mg_grids *g)
{
	const struct mg_level *l = &g->level[g->finest];

	memset(l->u.memory, 0, (size_t)l->u.plane * (size_t)(l->nz + 2) * sizeof(double));
}

static void run_mg(struct npb_run *run)
{
	const int iterations = problems[run->class].iterations;
	const double points = ldexp(1, 3 * problems[run->class].finest);
	double sum[NPB_MAX_RESIDUALS] = {0};
	struct mg_grids g;

	mg_open(&g, run, problems[run->class].finest);
	set_operators(&g, run->class);
	mg_place_charges(&g);
	mg_place_charges(&g);	/* twice, as NASA's program does */
	mg_iterate(&g, 1, sum); /* untimed: touches all memory */
	clear_solution(&g);
	npb_timer_start(run);
	mg_iterate(&g, npb_steps(iterations), sum);
	npb_timer_stop(run);
	run->mega_ops = 58e-6 * iterations * points; /* as NPB counts them */
	npb_residual(run, sqrt(sum[0] / points));
	npb_residual(run, sqrt(sum[iterations] / points));
	npb_check(run, "L2 norm", sqrt(sum[iterations] / points), problems[run->class].norm, 1e-8);
	/* On the finest grid: smoothed, and r computed before and after. */
	npb_check_work(run, (2 * iterations + 1) * (int64_t)points);
	mg_close(&g);
}

static void describe_mg(struct npb_run *run)
{
	for (int i = 0; i < 3; i++)
		run->size[i] = INT64_C(1) << problems[run->class].finest;
	run->iterations = problems[run->class].iterations;
}

/* Two planes and rows of the finest grid for each rank, at least. */
static int most_ranks_mg(enum npb_class class)
{
	const int half = 1 << (problems[class].finest - 1);

	return half * half;
}

static uint64_t memory_mg(enum npb_class class, int ranks)
{
	return mg_bytes(problems[class].finest, ranks);
}

const struct npb_kernel npb_kernel = {
    .name = "MG",
    .operations = "floating point",
    .rule = NPB_POWER_OF_TWO,
    .most_ranks = most_ranks_mg,
    .memory_bytes = memory_mg,
    .describe = describe_mg,
    .run = run_mg,
};
