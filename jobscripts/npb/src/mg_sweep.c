/*
 * The steps of MG's V-cycle. What the report writes as one operator after the other is done in one
 * sweep over the planes z: once plane z of u is corrected, plane z - 1 of the residual can be had,
 * and with it plane z - 2 of u smoothed. So u and v are read from memory once, and the residual
 * never goes there: three planes of it are enough.
 */
#include "mg.h"

/* The grid is periodic in x, which is never cut. */
NPB_INLINE void close_row(double *row, int n)
{
	row[-1] = row[n - 1];
	row[n] = row[0];
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

		mg_residual_row(g->a,
				mg_rows_around(mg_row(&l->u, z - 1, y), mg_row(&l->u, z, y),
					       mg_row(&l->u, z + 1, y), l->u.row),
				mg_row(&l->r, z, y), r, l->n);
		close_row(r, l->n);
	}
}

static double square_plane(const struct mg_grids *g, const struct mg_level *l, int z)
{
	double sum = 0;

	for (int y = 0; y < l->ny; y++)
		sum += mg_sum_of_squares(ring_row(g, &l->u, z, y), l->n);
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
		npb_worked(z < l->nz ? (int64_t)l->ny * l->n : 0);
		if (z == 0 || z % 2 != 0 || last)
			continue;
		for (int y = 0; y < l->ny / 2; y++) {
			double *out = mg_row(&coarse, z / 2 - 1, y);

			mg_restrict_row(mg_rows_around(ring_row(g, &l->u, z - 2, 2 * y + 1),
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

			mg_restrict_row(mg_rows_around(mg_row(&l->r, 2 * z, 2 * y + 1),
						       mg_row(&l->r, 2 * z + 1, 2 * y + 1),
						       mg_row(&l->r, 2 * z + 2, 2 * y + 1),
						       l->r.row),
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

		mg_smooth_row(g->c,
			      mg_rows_around(ring_row(g, &l->u, z - 1, y), ring_row(g, &l->u, z, y),
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
			mg_smooth_row(g->c,
				      mg_rows_around(mg_row(&l->r, z - 1, y), mg_row(&l->r, z, y),
						     mg_row(&l->r, z + 1, y), l->r.row),
				      u, l->n);
			close_row(u, l->n);
		}
	}
	mg_fill_halo(g, l, &l->u, MG_HALO);
}

/* Plane z of u, halo rows too: an odd fine point lies on a coarse one, an even one between two. */
static void interpolate_plane(struct mg_level *l, const struct mg_field *coarse, int z, double keep)
{
	const int upper = mg_half(z), lower = mg_half(z - 1);

	for (int y = -MG_HALO; y < l->ny + MG_HALO; y++) {
		const double *const rows[4] = {
		    mg_row(coarse, lower, mg_half(y - 1)), mg_row(coarse, lower, mg_half(y)),
		    mg_row(coarse, upper, mg_half(y - 1)), mg_row(coarse, upper, mg_half(y))};
		double *u = mg_row(&l->u, z, y);

		mg_interpolate_row(rows, u, l->n / 2, keep);
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
		if (z >= MG_HALO && k == g->finest)
			npb_worked((int64_t)l->ny * l->n);
	}
	mg_fill_halo(g, l, &l->u, MG_HALO);
}
