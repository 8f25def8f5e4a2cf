/* The V-cycle of MG: one operator after the other, each followed by its exchange. */
#include <string.h>

#include "mg_grids.h"
#include "npb.h"

/*
 * The operators of MG on one row of points. They use their symmetry (section 2.2.2): sums over the
 * 4 nearest and the 4 diagonal rows around a row are made once and used by three points.
 */

enum { LANES = 8, LONGEST = 1 << (MG_LEVELS - 1) };

/* One row of nx points each. r = v - A u; a[1] is 0. */
NPB_VECTOR static void mg_residual_row(const double *a, struct mg_rows u, const double *restrict v,
				       double *restrict r, int n)
{
	double near[LONGEST + 2], far[LONGEST + 2]; /* one more to the left: [x + 1] */
	const double a0 = a[0], a2 = a[2], a3 = a[3];

	for (int x = -1; x <= n; x++) {
		near[x + 1] = mg_sum_of(u.nearest, x);
		far[x + 1] = mg_sum_of(u.diagonal, x);
	}
	for (int x = 0; x < n; x++)
		r[x] = v[x] - a0 * u.middle[x] - a2 * (far[x + 1] + near[x] + near[x + 2]) -
		       a3 * (far[x] + far[x + 2]);
}

/* u += S r; c[3] is 0. */
NPB_VECTOR static void mg_smooth_row(const double *c, struct mg_rows r, double *restrict u, int n)
{
	double near[LONGEST + 2], far[LONGEST + 2];
	const double c0 = c[0], c1 = c[1], c2 = c[2];

	for (int x = -1; x <= n; x++) {
		near[x + 1] = mg_sum_of(r.nearest, x);
		far[x + 1] = mg_sum_of(r.diagonal, x);
	}
	for (int x = 0; x < n; x++)
		u[x] += c0 * r.middle[x] + c1 * (r.middle[x - 1] + r.middle[x + 1] + near[x + 1]) +
			c2 * (far[x + 1] + near[x] + near[x + 2]);
}

/* P r: weights 1/2, 1/4, 1/8, 1/16 by distance; coarse point x is fine point 2x + 1. */
NPB_VECTOR static void mg_restrict_row(struct mg_rows r, double *restrict out, int coarse)
{
	double mean[LONGEST + 1];

	for (int x = 0; x <= 2 * coarse; x++)
		mean[x] = 0.5 * r.middle[x] + 0.25 * mg_sum_of(r.nearest, x) +
			  0.125 * mg_sum_of(r.diagonal, x);
	for (int x = 0; x < coarse; x++)
		out[x] = mean[2 * x + 1] + 0.5 * (mean[2 * x] + mean[2 * x + 2]);
}

/* u = keep u + Q z: `z` are the four coarse rows around it, some of them the same. */
NPB_VECTOR static void mg_interpolate_row(const double *const z[4], double *restrict u, int coarse,
					  double keep)
{
	double mean[LONGEST / 2 + 1];

	for (int x = -1; x < coarse; x++)
		mean[x + 1] = 0.25 * mg_sum_of(z, x);
	for (int x = 0; x < coarse; x++) {
		u[2 * x] = keep * u[2 * x] + 0.5 * (mean[x] + mean[x + 1]);
		u[2 * x + 1] = keep * u[2 * x + 1] + mean[x + 1];
	}
}

NPB_VECTOR static double mg_sum_of_squares(const double *restrict row, int n)
{
	double lane[LANES] = {0}, sum = 0;
	int x = 0;

	for (; x + LANES <= n; x += LANES) {
		for (int l = 0; l < LANES; l++)
			lane[l] += row[x + l] * row[x + l];
	}
	for (; x < n; x++)
		sum += row[x] * row[x];
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
}

static struct mg_rows around(const struct mg_field *f, int z, int y)
{
	return mg_rows_around(mg_row(f, z - 1, y), mg_row(f, z, y), mg_row(f, z + 1, y), f->row);
}

/* r = v - A u; r and v may be the same. */
static void residual(struct mg_grids *g, const struct mg_level *l, const struct mg_field *v,
		     const struct mg_field *r)
{
	double row[1 << (MG_LEVELS - 1)];

	for (int z = 0; z < l->nz; z++) {
		for (int y = 0; y < l->ny; y++) {
			mg_residual_row(g->a, around(&l->u, z, y), mg_row(v, z, y), row, l->nx);
			memcpy(mg_row(r, z, y), row, (size_t)l->nx * sizeof(double));
		}
	}
	mg_fill(g, l, r);
}

/* u += S r */
static void smooth(struct mg_grids *g, const struct mg_level *l, const struct mg_field *r)
{
	for (int z = 0; z < l->nz; z++) {
		for (int y = 0; y < l->ny; y++)
			mg_smooth_row(g->c, around(r, z, y), mg_row(&l->u, z, y), l->nx);
	}
	mg_fill(g, l, &l->u);
}

/* One point of P r, by the local indices of the fine point. */
static double restrict_point(const struct mg_field *r, int z, int y, int x)
{
	double sum = 0;

	for (int dz = -1; dz <= 1; dz++) {
		for (int dy = -1; dy <= 1; dy++) {
			for (int dx = -1; dx <= 1; dx++)
				sum += mg_row(r, z + dz, y + dy)[x + dx] /
				       (double)(2 << (dx != 0) << (dy != 0) << (dz != 0));
		}
	}
	return sum;
}

/* From the own parts to a whole grid: each rank has those coarse points whose fine point it has. */
static void restrict_to_whole(struct mg_grids *g, const struct mg_level *l,
			      const struct mg_field *r)
{
	struct mg_level *coarse = &g->level[g->shared - 1];
	const int n = coarse->n;

	memset(g->all, 0, (size_t)n * (size_t)n * (size_t)n * sizeof(double));
	for (int z = 1 - l->z0 % 2; z < l->nz; z += 2) {
		for (int y = 1 - l->y0 % 2; y < l->ny; y += 2) {
			for (int x = 1 - l->x0 % 2; x < l->nx; x += 2)
				g->all[((l->z0 + z) / 2 * n + (l->y0 + y) / 2) * n +
				       (l->x0 + x) / 2] = restrict_point(r, z, y, x);
		}
	}
	npb_allreduce(g->run, g->all, n * n * n, MPI_DOUBLE, MPI_SUM);
	for (int z = 0; z < n; z++) {
		for (int y = 0; y < n; y++)
			memcpy(mg_row(&coarse->r, z, y), g->all + (z * n + y) * n,
			       (size_t)n * sizeof(double));
	}
}

static void restrict_level(struct mg_grids *g, int k)
{
	const struct mg_level *l = &g->level[k], *coarse = &g->level[k - 1];
	const struct mg_field *r = k == g->finest ? &g->fine_r : &l->r;

	if (k == g->shared) {
		restrict_to_whole(g, l, r);
	} else {
		for (int z = 0; z < coarse->nz; z++) {
			for (int y = 0; y < coarse->ny; y++)
				mg_restrict_row(around(r, 2 * z + 1, 2 * y + 1),
						mg_row(&coarse->r, z, y), coarse->nx);
		}
	}
	mg_fill(g, coarse, &coarse->r);
}

/* The four rows of a coarse grid around a fine row; its own indices, from -1 on. */
struct corners {
	const double *row[4];
};

static struct corners corners_of(const struct mg_field *coarse, int z, int y)
{
	return (struct corners){{mg_row(coarse, mg_half(z - 1), mg_half(y - 1)),
				 mg_row(coarse, mg_half(z - 1), mg_half(y)),
				 mg_row(coarse, mg_half(z), mg_half(y - 1)),
				 mg_row(coarse, mg_half(z), mg_half(y))}};
}

/* One point of Q z. */
static double interpolate_point(const struct corners *c, int x)
{
	return 0.125 * (mg_sum_of(c->row, mg_half(x - 1)) + mg_sum_of(c->row, mg_half(x)));
}

/* u = keep u + Q u(k - 1), ghosts too: the coarse ones are enough for them. */
static void interpolate(const struct mg_grids *g, int k, double keep)
{
	const struct mg_level *l = &g->level[k];
	const bool whole = k == g->shared; /* the coarse grid begins at 0 and not at this part */
	const int x0 = whole ? l->x0 : 0, y0 = whole ? l->y0 : 0, z0 = whole ? l->z0 : 0;

	for (int z = -1; z <= l->nz; z++) {
		for (int y = -1; y <= l->ny; y++) {
			const struct corners c = corners_of(&g->level[k - 1].u, z0 + z, y0 + y);
			double *u = mg_row(&l->u, z, y);
			int x = -1;

			for (; x < (whole ? l->nx : 0); x++)
				u[x] = keep * u[x] + interpolate_point(&c, x0 + x);
			if (!whole)
				mg_interpolate_row(c.row, u, l->nx / 2, keep);
			u[l->nx] = keep * u[l->nx] + interpolate_point(&c, x0 + l->nx);
		}
	}
}

static void count_finest(const struct mg_grids *g)
{
	const struct mg_level *l = &g->level[g->finest];

	npb_worked((int64_t)l->nx * l->ny * l->nz);
}

static void finest_residual(struct mg_grids *g)
{
	const struct mg_level *l = &g->level[g->finest];

	residual(g, l, &l->r, &g->fine_r);
}

static void cycle(struct mg_grids *g)
{
	const struct mg_level *coarsest = &g->level[1], *finest = &g->level[g->finest];

	for (int k = g->finest; k > 1; k--)
		restrict_level(g, k);
	memset(coarsest->u.memory, 0,
	       (size_t)coarsest->u.plane * (size_t)(coarsest->nz + 2) * sizeof(double));
	smooth(g, coarsest, &coarsest->r);
	for (int k = 2; k < g->finest; k++) {
		interpolate(g, k, 0);
		residual(g, &g->level[k], &g->level[k].r, &g->level[k].r);
		smooth(g, &g->level[k], &g->level[k].r);
	}
	interpolate(g, g->finest, 1);
	finest_residual(g);
	smooth(g, finest, &g->fine_r);
	count_finest(g);
}

/* Sum of r^2 over all ranks, and, as NASA's programs do, the largest |r|. */
static double square_sum(struct mg_grids *g)
{
	const struct mg_level *l = &g->level[g->finest];
	double sum = 0, most = 0;

	for (int z = 0; z < l->nz; z++) {
		for (int y = 0; y < l->ny; y++) {
			const double *row = mg_row(&g->fine_r, z, y);

			sum += mg_sum_of_squares(row, l->nx);
			for (int x = 0; x < l->nx; x++)
				most = row[x] * row[x] > most ? row[x] * row[x] : most;
		}
	}
	npb_allreduce(g->run, &most, 1, MPI_DOUBLE, MPI_MAX);
	npb_allreduce(g->run, &sum, 1, MPI_DOUBLE, MPI_SUM);
	return sum;
}

void mg_iterate(struct mg_grids *g, int cycles, double *sum)
{
	finest_residual(g);
	count_finest(g);
	sum[0] = square_sum(g);
	for (int i = 0; i < cycles; i++) {
		cycle(g);
		finest_residual(g);
		count_finest(g);
	}
	sum[cycles] = square_sum(g);
}
