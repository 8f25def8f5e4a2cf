/*
 * The operators of MG on one row of points. They use their symmetry (section 2.2.2): sums over the
 * 4 nearest and the 4 diagonal rows around a row are made once and used by three points.
 */
#include "mg_grids.h"

enum { LANES = 8, LONGEST = 1 << (MG_LEVELS - 1) };

NPB_VECTOR void mg_residual_row(const double *a, struct mg_rows u, const double *restrict v,
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

NPB_VECTOR void mg_smooth_row(const double *c, struct mg_rows r, double *restrict u, int n)
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

NPB_VECTOR void mg_restrict_row(struct mg_rows r, double *restrict out, int coarse)
{
	double mean[LONGEST + 1];

	for (int x = 0; x <= 2 * coarse; x++)
		mean[x] = 0.5 * r.middle[x] + 0.25 * mg_sum_of(r.nearest, x) +
			  0.125 * mg_sum_of(r.diagonal, x);
	for (int x = 0; x < coarse; x++)
		out[x] = mean[2 * x + 1] + 0.5 * (mean[2 * x] + mean[2 * x + 2]);
}

NPB_VECTOR void mg_interpolate_row(const double *const z[4], double *restrict u, int coarse,
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

NPB_VECTOR double mg_sum_of_squares(const double *restrict row, int n)
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
