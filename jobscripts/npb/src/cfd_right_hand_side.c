/*
 * dU/dt of chapter 3 of the report: the right-hand side of all three programs. With the
 * momenta in the order (along it, across, across), all directions are alike. Each component is a
 * loop over a row; the neighbours along direction d are `s` elements away.
 */
#include <math.h>

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

	CFD_ROW
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

	CFD_ROW
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
	const int first = begin(box, 0), n = cfd_whole(end(box, 0) - first);

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

/* One direction of a loop: the way to the neighbours, and the weights, times the scale. */
struct way {
	ptrdiff_t s;
	double convection, viscous;
	double near, here, far; /* diffusion and dissipation: weights of u(+-1), u(0), u(+-2) */
};

NPB_INLINE struct way way_of(const struct cfd_box *box, int d, double scale)
{
	const struct cfd_axis *axis = &box->axis[d];
	const double diffusion = scale * axis->diffusion * axis->curvature;
	const double dissipation = scale * box->dissipation;

	return (struct way){
	    .s = box->stride[d],
	    .convection = scale * axis->convection,
	    .viscous = scale * CFD_C34 * axis->curvature,
	    .near = diffusion + 4 * dissipation,
	    .here = 2 * diffusion + 6 * dissipation,
	    .far = dissipation,
	};
}

/* In what follows u, v ... point to the point at hand, `a` to the velocity along the way. */
NPB_INLINE double spread(struct way w, const double *u)
{
	return w.near * (u[w.s] + u[-w.s]) - w.here * u[0] - w.far * (u[2 * w.s] + u[-2 * w.s]);
}

NPB_INLINE double curve(struct way w, const double *v)
{
	return v[w.s] - 2 * v[0] + v[-w.s];
}

NPB_INLINE double mass(struct way w, const double *u, const double *momentum)
{
	return spread(w, u) - w.convection * (momentum[w.s] - momentum[-w.s]);
}

/* Momentum across the way, v its velocity. */
NPB_INLINE double across(struct way w, const double *u, const double *v, const double *a)
{
	return spread(w, u) + w.viscous * curve(w, v) -
	       w.convection * (u[w.s] * a[w.s] - u[-w.s] * a[-w.s]);
}

NPB_INLINE double along(struct way w, const double *u, const double *a, const double *pressure)
{
	return spread(w, u) + CFD_NORMAL * w.viscous * curve(w, a) -
	       w.convection *
		   ((u[w.s] * a[w.s] + pressure[w.s]) - (u[-w.s] * a[-w.s] + pressure[-w.s]));
}

NPB_INLINE double energy(struct way w, const double *u, const double *inverse,
			 const double *kinetic, const double *a, const double *pressure)
{
	const double heat =
	    u[w.s] * inverse[w.s] - 2 * (u[0] * inverse[0]) + u[-w.s] * inverse[-w.s];
	const double squares = a[w.s] * a[w.s] - 2 * (a[0] * a[0]) + a[-w.s] * a[-w.s];
	const double flux =
	    (u[w.s] + pressure[w.s]) * a[w.s] - (u[-w.s] + pressure[-w.s]) * a[-w.s];

	return spread(w, u) +
	       w.viscous *
		   ((1 - CFD_C15) * curve(w, kinetic) + (1.0 / 6) * squares + CFD_C15 * heat) -
	       w.convection * flux;
}

/* A direction's part of a row; `first`: nothing is there yet. */
NPB_INLINE void add_momentum(const struct cfd_box *box, int d, int e, ptrdiff_t at, int n,
			     double scale, bool first)
{
	const struct way w = way_of(box, d, scale);
	const double *restrict u = box->u[1 + e] + at, *restrict v = box->speed[e] + at;
	const double *restrict a = box->speed[d] + at, *restrict pressure = box->pressure + at;
	const double *restrict forcing = box->forcing[1 + e] + at;
	double *restrict to = box->rate[1 + e] + at;

	if (e == d) {
		CFD_ROW
		for (int i = 0; i < n; i++)
			to[i] = (first ? scale * forcing[i] : to[i]) +
				along(w, u + i, a + i, pressure + i);
	} else {
		CFD_ROW
		for (int i = 0; i < n; i++)
			to[i] =
			    (first ? scale * forcing[i] : to[i]) + across(w, u + i, v + i, a + i);
	}
}

NPB_INLINE void add_direction(const struct cfd_box *box, int d, ptrdiff_t at, int n, double scale,
			      bool first)
{
	const struct way w = way_of(box, d, scale);
	const double *restrict u = box->u[0] + at, *restrict momentum = box->u[1 + d] + at;
	const double *restrict inverse = box->inverse + at, *restrict kinetic = box->kinetic + at;
	const double *restrict a = box->speed[d] + at, *restrict pressure = box->pressure + at;
	const double *restrict forcing = box->forcing[0] + at;
	double *restrict to = box->rate[0] + at;

	CFD_ROW
	for (int i = 0; i < n; i++)
		to[i] = (first ? scale * forcing[i] : to[i]) + mass(w, u + i, momentum + i);
	for (int e = 0; e < 3; e++)
		add_momentum(box, d, e, at, n, scale, first);
	u = box->u[4] + at;
	forcing = box->forcing[4] + at;
	to = box->rate[4] + at;
	CFD_ROW
	for (int i = 0; i < n; i++)
		to[i] = (first ? scale * forcing[i] : to[i]) +
			energy(w, u + i, inverse + i, kinetic + i, a + i, pressure + i);
}

/*
 * Next to the boundary the dissipation has other weights: (5, -4, 1) one point from it,
 * (-4, 6, -4, 1) two points. What was too much is taken back; s leads to the boundary.
 */
NPB_INLINE void correct(const struct cfd_box *box, ptrdiff_t at, int n, ptrdiff_t s, int distance,
			double scale)
{
	for (int m = 0; m < CFD_FIELDS; m++) {
		const double *restrict u = box->u[m] + at;
		double *restrict to = box->rate[m] + at;

		CFD_ROW
		for (int i = 0; i < n; i++)
			to[i] +=
			    scale * box->dissipation *
			    (distance == 2 ? u[i + 2 * s] : u[i + 2 * s] - 4 * u[i + s] + u[i]);
	}
}

/* Row j or k; d is its direction. */
NPB_INLINE void correct_row(const struct cfd_box *box, int d, int index, ptrdiff_t at, int n,
			    double scale)
{
	const int below = box->first[d] + index, above = box->total[d] - 1 - below;

	if (below <= 2)
		correct(box, at, n, -box->stride[d], below, scale);
	if (above <= 2)
		correct(box, at, n, box->stride[d], above, scale);
}

/* The ends of a row. */
NPB_INLINE void correct_ends(const struct cfd_box *box, int j, int k, double scale)
{
	for (int distance = 1; distance <= 2; distance++) {
		const int below = distance - box->first[0];
		const int above = box->total[0] - 1 - distance - box->first[0];

		if (below >= 0 && below < box->count[0])
			correct(box, cfd_at(box, below, j, k), 1, -1, distance, scale);
		if (above >= 0 && above < box->count[0])
			correct(box, cfd_at(box, above, j, k), 1, 1, distance, scale);
	}
}

NPB_VECTOR void cfd_rate_row(const struct cfd_box *box, int j, int k, double scale)
{
	const ptrdiff_t at = cfd_at(box, box->low[0], j, k);
	const int n = cfd_whole(box->high[0] - box->low[0]);

	add_direction(box, 0, at, n, scale, true);
	add_direction(box, 1, at, n, scale, false);
	add_direction(box, 2, at, n, scale, false);
	correct_ends(box, j, k, scale);
	correct_row(box, 1, j, at, n, scale);
	correct_row(box, 2, k, at, n, scale);
}

/* In eight sums, so that it is vectors that are added. */
NPB_VECTOR double cfd_row_squares(const struct cfd_box *box, int j, int k)
{
	enum { LANES = 8 };
	const ptrdiff_t at = cfd_at(box, box->low[0], j, k);
	const int n = box->high[0] - box->low[0], whole = n - n % LANES;
	double lane[LANES] = {0}, sum = 0;

	for (int m = 0; m < CFD_FIELDS; m++) {
		const double *restrict rate = box->rate[m] + at;

		for (int i = 0; i < whole; i += LANES)
			for (int l = 0; l < LANES; l++)
				lane[l] += rate[i + l] * rate[i + l];
		for (int i = whole; i < n; i++)
			lane[i - whole] += rate[i] * rate[i];
	}
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
}

double cfd_rate(const struct cfd_box *box, double scale)
{
	double squares = 0;

	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++) {
			cfd_rate_row(box, j, k, scale);
			squares += cfd_row_squares(box, j, k);
		}
	}
	return squares;
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

				CFD_ROW
				for (int i = 0; i < n; i++)
					u[i] += rate[i];
			}
		}
	}
}
