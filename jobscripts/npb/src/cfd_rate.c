/*
 * dU/dt of the report, section 3.3: the right-hand side of all three programs. One direction
 * after the other: with the momenta in the order (along it, across, across), all directions are
 * alike. Each component is a loop over a row whose neighbours are `s` elements away.
 */
#include <math.h>
#include <string.h>

#include "cfd.h"

NPB_INLINE void primitives(const struct cfd_box *box, ptrdiff_t at, int n)
{
	const double *restrict u0 = box->u[0] + at, *restrict u1 = box->u[1] + at;
	const double *restrict u2 = box->u[2] + at, *restrict u3 = box->u[3] + at;
	const double *restrict u4 = box->u[4] + at;
	double *restrict inverse = box->inverse + at, *restrict kinetic = box->kinetic + at;
	double *restrict x = box->speed[0] + at, *restrict y = box->speed[1] + at;
	double *restrict z = box->speed[2] + at, *restrict pressure = box->pressure + at;
	double w, a, b, c, q;

	for (int i = 0; i < n; i++) {
		w = 1 / u0[i];
		a = u1[i] * w;
		b = u2[i] * w;
		c = u3[i] * w;
		q = 0.5 * (a * a + b * b + c * c);
		inverse[i] = w;
		x[i] = a;
		y[i] = b;
		z[i] = c;
		kinetic[i] = q;
		pressure[i] = CFD_C2 * (u4[i] - u0[i] * q);
	}
}

NPB_INLINE void sound(const struct cfd_box *box, ptrdiff_t at, int n)
{
	const double *restrict inverse = box->inverse + at, *restrict pressure = box->pressure + at;
	double *restrict to = box->sound + at;

	for (int i = 0; i < n; i++)
		to[i] = sqrt(CFD_C1 * pressure[i] * inverse[i]);
}

/* A layer of ghosts, except beyond the boundary. */
static int begin(const struct cfd_box *box, int d)
{
	return box->first[d] == 0 ? 0 : -1;
}

static int end(const struct cfd_box *box, int d)
{
	return box->count[d] + (box->first[d] + box->count[d] < box->total[d]);
}

NPB_VECTOR void cfd_primitives(const struct cfd_box *box)
{
	const int first = begin(box, 0), n = end(box, 0) - first;

	for (int k = begin(box, 2); k < end(box, 2); k++) {
		for (int j = begin(box, 1); j < end(box, 1); j++) {
			if ((k < 0 || k >= box->count[2]) && (j < 0 || j >= box->count[1]))
				continue; /* an edge: no stencil reaches it, nobody sent it */
			primitives(box, cfd_at(box, first, j, k), n);
			if (box->sound)
				sound(box, cfd_at(box, first, j, k), n);
		}
	}
}

/* Where a loop works: a row and the way to the neighbours. */
struct row {
	ptrdiff_t s;
	int n;
	double convection, viscous;
	double near, here, far; /* diffusion and dissipation: weights of u(+-1), u(0), u(+-2) */
};

NPB_INLINE double spread(const double *restrict u, ptrdiff_t i, const struct row *w)
{
	return w->near * (u[i + w->s] + u[i - w->s]) - w->here * u[i] -
	       w->far * (u[i + 2 * w->s] + u[i - 2 * w->s]);
}

NPB_INLINE double curve(const double *restrict v, ptrdiff_t i, ptrdiff_t s)
{
	return v[i + s] - 2 * v[i] + v[i - s];
}

NPB_INLINE void mass(const struct row *w, const double *restrict u, const double *restrict along,
		     double *restrict to)
{
	const ptrdiff_t s = w->s;

	for (int i = 0; i < w->n; i++)
		to[i] += spread(u, i, w) - w->convection * (along[i + s] - along[i - s]);
}

/* Momentum across: u of that direction, v its velocity, a the velocity along the row's. */
NPB_INLINE void across(const struct row *w, const double *restrict u, const double *restrict v,
		       const double *restrict a, double *restrict to)
{
	const ptrdiff_t s = w->s;

	for (int i = 0; i < w->n; i++)
		to[i] += spread(u, i, w) + w->viscous * curve(v, i, s) -
			 w->convection * (u[i + s] * a[i + s] - u[i - s] * a[i - s]);
}

NPB_INLINE void along(const struct row *w, const double *restrict u, const double *restrict a,
		      const double *restrict pressure, double *restrict to)
{
	const ptrdiff_t s = w->s;
	const double viscous = CFD_NORMAL * w->viscous;

	for (int i = 0; i < w->n; i++)
		to[i] += spread(u, i, w) + viscous * curve(a, i, s) -
			 w->convection * ((u[i + s] * a[i + s] + pressure[i + s]) -
					  (u[i - s] * a[i - s] + pressure[i - s]));
}

NPB_INLINE void energy(const struct row *w, const struct cfd_box *box, ptrdiff_t at,
		       const double *restrict a, double *restrict to)
{
	const double *restrict u = box->u[4] + at, *restrict inverse = box->inverse + at;
	const double *restrict q = box->kinetic + at, *restrict p = box->pressure + at;
	const ptrdiff_t s = w->s;
	double heat, squares, flux;

	for (int i = 0; i < w->n; i++) {
		heat =
		    u[i + s] * inverse[i + s] - 2 * (u[i] * inverse[i]) + u[i - s] * inverse[i - s];
		squares = a[i + s] * a[i + s] - 2 * (a[i] * a[i]) + a[i - s] * a[i - s];
		flux = (u[i + s] + p[i + s]) * a[i + s] - (u[i - s] + p[i - s]) * a[i - s];
		to[i] += spread(u, i, w) +
			 w->viscous * ((1 - CFD_C15) * curve(q, i, s) + (1.0 / 6) * squares +
				       CFD_C15 * heat) -
			 w->convection * flux;
	}
}

NPB_INLINE void add_direction(const struct cfd_box *box, int d, ptrdiff_t at, int n)
{
	const struct cfd_axis *axis = &box->axis[d];
	const double diffusion = axis->diffusion * axis->curvature;
	const struct row w = {
	    .s = box->stride[d],
	    .n = n,
	    .convection = axis->convection,
	    .viscous = CFD_C34 * axis->curvature,
	    .near = diffusion + 4 * box->dissipation,
	    .here = 2 * diffusion + 6 * box->dissipation,
	    .far = box->dissipation,
	};
	const double *a = box->speed[d] + at;

	mass(&w, box->u[0] + at, box->u[1 + d] + at, box->rate[0] + at);
	along(&w, box->u[1 + d] + at, a, box->pressure + at, box->rate[1 + d] + at);
	for (int o = 1; o < 3; o++) {
		const int t = (d + o) % 3;

		across(&w, box->u[1 + t] + at, box->speed[t] + at, a, box->rate[1 + t] + at);
	}
	energy(&w, box, at, a, box->rate[4] + at);
}

/*
 * Next to the boundary the dissipation has other weights: (5, -4, 1) one point from it,
 * (-4, 6, -4, 1) two points. What was too much is taken back; s leads to the boundary.
 */
NPB_INLINE void correct(const struct cfd_box *box, ptrdiff_t at, int n, ptrdiff_t s, int distance)
{
	for (int m = 0; m < CFD_FIELDS; m++) {
		const double *restrict u = box->u[m] + at;
		double *restrict to = box->rate[m] + at;

		for (int i = 0; i < n; i++)
			to[i] +=
			    box->dissipation *
			    (distance == 2 ? u[i + 2 * s] : u[i + 2 * s] - 4 * u[i + s] + u[i]);
	}
}

/* Row j or k; d is its direction. */
NPB_INLINE void correct_row(const struct cfd_box *box, int d, int index, ptrdiff_t at, int n)
{
	const int below = box->first[d] + index, above = box->total[d] - 1 - below;

	if (below <= 2)
		correct(box, at, n, -box->stride[d], below);
	if (above <= 2)
		correct(box, at, n, box->stride[d], above);
}

/* The ends of a row. */
NPB_INLINE void correct_ends(const struct cfd_box *box, int j, int k)
{
	for (int distance = 1; distance <= 2; distance++) {
		const int below = distance - box->first[0];
		const int above = box->total[0] - 1 - distance - box->first[0];

		if (below >= 0 && below < box->count[0])
			correct(box, cfd_at(box, below, j, k), 1, -1, distance);
		if (above >= 0 && above < box->count[0])
			correct(box, cfd_at(box, above, j, k), 1, 1, distance);
	}
}

NPB_VECTOR void cfd_rate_row(const struct cfd_box *box, int j, int k, double scale)
{
	const ptrdiff_t at = cfd_at(box, box->low[0], j, k);
	const int n = box->high[0] - box->low[0];

	for (int m = 0; m < CFD_FIELDS; m++)
		memcpy(box->rate[m] + at, box->forcing[m] + at, (size_t)n * sizeof(double));
	for (int d = 0; d < 3; d++)
		add_direction(box, d, at, n);
	correct_ends(box, j, k);
	correct_row(box, 1, j, at, n);
	correct_row(box, 2, k, at, n);
	for (int m = 0; m < CFD_FIELDS; m++) {
		double *restrict to = box->rate[m] + at;

		for (int i = 0; i < n; i++)
			to[i] *= scale;
	}
}

void cfd_rate(const struct cfd_box *box, double scale)
{
	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++)
			cfd_rate_row(box, j, k, scale);
	}
}

NPB_VECTOR void cfd_add_rate(const struct cfd_box *box)
{
	const int n = box->high[0] - box->low[0];

	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++) {
			const ptrdiff_t at = cfd_at(box, box->low[0], j, k);

			for (int m = 0; m < CFD_FIELDS; m++) {
				double *restrict u = box->u[m] + at;
				const double *restrict rate = box->rate[m] + at;

				for (int i = 0; i < n; i++)
					u[i] += rate[i];
			}
		}
	}
}
