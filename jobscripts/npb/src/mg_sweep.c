/*
 * The steps of MG's V-cycle. What the report writes as one operator after the other is done in one
 * sweep over the planes z: once plane z of u is corrected, plane z - 1 of the residual can be had,
 * and with it plane z - 2 of u smoothed. So u and v are read from memory once, and the residual
 * never goes there: three planes of it are enough.
 *
 * The stencils use their symmetry (section 2.2.2): sums over the 4 nearest and the 4 diagonal rows
 * around a row are made once and used by three points.
 */
#include "mg.h"

/* Rows around a row in the plane of y and z: itself, the four nearest, the four diagonal ones. */
struct rows {
	const double *middle, *nearest[4], *diagonal[4];
};

enum { LANES = 8, LONGEST = 1 << (MG_LEVELS - 1) };

NPB_INLINE struct rows rows_around(const double *below, const double *middle, const double *above,
				   int64_t row)
{
	return (struct rows){middle,
			     {below, above, middle - row, middle + row},
			     {below - row, below + row, above - row, above + row}};
}

NPB_INLINE double sum_of(const double *const row[4], int x)
{
	return (row[0][x] + row[1][x]) + (row[2][x] + row[3][x]);
}

/* The grid is periodic in x, which is never cut. */
NPB_INLINE void close_row(double *row, int n)
{
	row[-1] = row[n - 1];
	row[n] = row[0];
}

/* r = v - A u for one row; a[1] is 0. */
NPB_VECTOR static void residual_row(const double *a, struct rows u, const double *restrict v,
				    double *restrict r, int n)
{
	double near[LONGEST + 2], far[LONGEST + 2]; /* one more to the left: [x + 1] */
	const double a0 = a[0], a2 = a[2], a3 = a[3];

	for (int x = -1; x <= n; x++) {
		near[x + 1] = sum_of(u.nearest, x);
		far[x + 1] = sum_of(u.diagonal, x);
	}
	for (int x = 0; x < n; x++)
		r[x] = v[x] - a0 * u.middle[x] - a2 * (far[x + 1] + near[x] + near[x + 2]) -
		       a3 * (far[x] + far[x + 2]);
}

/* u += S r for one row; c[3] is 0. */
NPB_VECTOR static void smooth_row(const double *c, struct rows r, double *restrict u, int n)
{
	double near[LONGEST + 2], far[LONGEST + 2];
	const double c0 = c[0], c1 = c[1], c2 = c[2];

	for (int x = -1; x <= n; x++) {
		near[x + 1] = sum_of(r.nearest, x);
		far[x + 1] = sum_of(r.diagonal, x);
	}
	for (int x = 0; x < n; x++)
		u[x] += c0 * r.middle[x] + c1 * (r.middle[x - 1] + r.middle[x + 1] + near[x + 1]) +
			c2 * (far[x + 1] + near[x] + near[x + 2]);
}

/* One row of P r: weights 1/2, 1/4, 1/8, 1/16 by distance; coarse point x is fine point 2x + 1. */
NPB_VECTOR static void restrict_row(struct rows r, double *restrict out, int coarse)
{
	double mean[LONGEST + 1];

	for (int x = 0; x <= 2 * coarse; x++)
		mean[x] =
		    0.5 * r.middle[x] + 0.25 * sum_of(r.nearest, x) + 0.125 * sum_of(r.diagonal, x);
	for (int x = 0; x < coarse; x++)
		out[x] = mean[2 * x + 1] + 0.5 * (mean[2 * x] + mean[2 * x + 2]);
}

/* Adds Q z to a row: `z` are the four coarse rows around it, some of them the same. */
NPB_VECTOR static void interpolate_row(const double *const z[4], double *restrict u, int coarse,
				       double keep)
{
	double mean[LONGEST / 2 + 1];

	for (int x = -1; x < coarse; x++)
		mean[x + 1] = 0.25 * sum_of(z, x);
	for (int x = 0; x < coarse; x++) {
		u[2 * x] = keep * u[2 * x] + 0.5 * (mean[x] + mean[x + 1]);
		u[2 * x + 1] = keep * u[2 * x + 1] + mean[x + 1];
	}
}

NPB_VECTOR static double sum_of_squares(const double *restrict row, int n)
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

/* Three planes in a ring: plane z of the residual, shaped like those of the level's fields. */
static double *ring_row(const struct mg_grids *g, const struct mg_field *f, int z, int y)
{
	return g->planes + (z + 3) % 3 * f->plane + (y + MG_HALO) * f->row + 1;
}

/* Plane z of r = v - A u into the ring, rows first ... last. */
static void residual_plane(const struct mg_grids *g, const struct mg_level *l, int z, int first,
			   int last)
{
	for (int y = first; y <= last; y++) {
		double *r = ring_row(g, &l->u, z, y);

		residual_row(g->a,
			     rows_around(mg_row(&l->u, z - 1, y), mg_row(&l->u, z, y),
					 mg_row(&l->u, z + 1, y), l->u.row),
			     mg_row(&l->r, z, y), r, l->n);
		close_row(r, l->n);
	}
}

static double square_plane(const struct mg_grids *g, const struct mg_level *l, int z)
{
	double sum = 0;

	for (int y = 0; y < l->ny; y++)
		sum += sum_of_squares(ring_row(g, &l->u, z, y), l->n);
	return sum;
}

/* The level below a level, as this rank sees it there: whole grids begin at 0, parts at y0, z0. */
static struct mg_field below(const struct mg_grids *g, int k, const struct mg_field *f)
{
	const struct mg_level *fine = &g->level[k], *coarse = &g->level[k - 1];
	struct mg_field seen = *f;

	seen.origin = mg_row(f, fine->z0 / 2 - coarse->z0, fine->y0 / 2 - coarse->y0);
	return seen;
}

double mg_residual(struct mg_grids *g, bool last)
{
	struct mg_level *l = &g->level[g->finest];
	const struct mg_field coarse = below(g, g->finest, &g->level[g->finest - 1].r);
	double sum = 0;

	for (int z = 0; z <= l->nz; z++) {
		residual_plane(g, l, z, 0, l->ny);
		if (z < l->nz)
			sum += square_plane(g, l, z);
		if (z == 0 || z % 2 != 0 || last)
			continue;
		for (int y = 0; y < l->ny / 2; y++) {
			double *out = mg_row(&coarse, z / 2 - 1, y);

			restrict_row(rows_around(ring_row(g, &l->u, z - 2, 2 * y + 1),
						 ring_row(g, &l->u, z - 1, 2 * y + 1),
						 ring_row(g, &l->u, z, 2 * y + 1), l->u.row),
				     out, l->n / 2);
			close_row(out, l->n / 2);
		}
	}
	if (!last && g->shared == g->finest)
		mg_make_whole(g);
	return sum;
}

void mg_restrict(struct mg_grids *g, int k)
{
	struct mg_level *l = &g->level[k];
	const struct mg_field coarse = below(g, k, &g->level[k - 1].r);

	mg_fill_halo(g, l, &l->r, 1);
	for (int z = 0; z < l->nz / 2; z++) {
		for (int y = 0; y < l->ny / 2; y++) {
			double *out = mg_row(&coarse, z, y);

			restrict_row(rows_around(mg_row(&l->r, 2 * z, 2 * y + 1),
						 mg_row(&l->r, 2 * z + 1, 2 * y + 1),
						 mg_row(&l->r, 2 * z + 2, 2 * y + 1), l->r.row),
				     out, l->n / 2);
			close_row(out, l->n / 2);
		}
	}
	if (k == g->shared && g->shared > 1)
		mg_make_whole(g);
}

static void smooth_plane(const struct mg_grids *g, struct mg_level *l, int z)
{
	for (int y = 0; y < l->ny; y++) {
		double *u = mg_row(&l->u, z, y);

		smooth_row(g->c,
			   rows_around(ring_row(g, &l->u, z - 1, y), ring_row(g, &l->u, z, y),
				       ring_row(g, &l->u, z + 1, y), l->u.row),
			   u, l->n);
		close_row(u, l->n);
	}
}

void mg_solve_coarsest(struct mg_grids *g)
{
	struct mg_level *l = &g->level[1];

	mg_fill_halo(g, l, &l->r, 1);
	for (int z = 0; z < l->nz; z++) {
		for (int y = 0; y < l->ny; y++) {
			double *u = mg_row(&l->u, z, y);

			u[0] = u[1] = 0;
			smooth_row(g->c,
				   rows_around(mg_row(&l->r, z - 1, y), mg_row(&l->r, z, y),
					       mg_row(&l->r, z + 1, y), l->r.row),
				   u, l->n);
			close_row(u, l->n);
		}
	}
	mg_fill_halo(g, l, &l->u, MG_HALO);
}

/* Half of z, rounded down, also below 0. */
static int half(int z)
{
	return (z + 2 * MG_HALO) / 2 - MG_HALO;
}

/* Plane z of u, halo rows too: an odd fine point lies on a coarse one, an even one between two. */
static void interpolate_plane(struct mg_level *l, const struct mg_field *coarse, int z, double keep)
{
	const int upper = half(z), lower = half(z - 1);

	for (int y = -MG_HALO; y < l->ny + MG_HALO; y++) {
		const double *const rows[4] = {
		    mg_row(coarse, lower, half(y - 1)), mg_row(coarse, lower, half(y)),
		    mg_row(coarse, upper, half(y - 1)), mg_row(coarse, upper, half(y))};
		double *u = mg_row(&l->u, z, y);

		interpolate_row(rows, u, l->n / 2, keep);
		close_row(u, l->n);
	}
}

void mg_correct(struct mg_grids *g, int k)
{
	struct mg_level *l = &g->level[k];
	const struct mg_field coarse = below(g, k, &g->level[k - 1].u);

	for (int z = -MG_HALO; z < l->nz + MG_HALO; z++) {
		interpolate_plane(l, &coarse, z, k == g->finest ? 1 : 0);
		if (z >= 0)
			residual_plane(g, l, z - 1, -1, l->ny);
		if (z >= MG_HALO)
			smooth_plane(g, l, z - 2);
	}
	mg_fill_halo(g, l, &l->u, MG_HALO);
}
