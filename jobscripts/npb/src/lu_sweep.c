/*
 * The triangular systems of the SSOR scheme (the report, section 3.4.2).
 *
 * With the Jacobians of the fluxes at a neighbour P applied to the change v of P,
 *   F v = convection, N v = viscosity, d v = diffusion (section 3.2),
 * a point solves
 *   lower: D v = dt L(U) + sum over x, y, z of  omega dt ( F/2h + (N + d)/h^2) v, before it
 *   upper: D w =           sum over x, y, z of  omega dt (-F/2h + (N + d)/h^2) v, after it
 *          v += w
 * D = 1 + 2 dt sum (N + d)/h^2: lower triangular, as convection cancels out in the middle.
 *
 * No 5x5 block is ever formed: N v and F v follow from the changes of velocity and pressure. Each
 * point computes what it adds to its three neighbours when it knows its v.
 */
#include <string.h>

#include "lu.h"
#include "npb.h"

enum {
	MARGIN = 1 /* lanes beside the used ones: neighbours' additions come in there */
};

/* One diagonal, at lane 0. */
struct diagonal {
	double *point, *x, *y_to, *z;
	const double *y_from; /* moved by one lane */
	int first, last;      /* lanes */
};

struct state {
	double inverse, speed[3], energy, kinetic;
};

NPB_INLINE double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* v = D^-1 v */
NPB_INLINE void solve_block(const struct lu_sweep *c, const struct state *s, double v[CFD_FIELDS])
{
	const double viscous = c->viscous * s->inverse, conducting = c->conducting * s->inverse;
	const double scale = 1 / (c->diagonal + viscous);
	double turned[3];

	v[0] = v[0] / c->diagonal;
	for (int d = 0; d < 3; d++) {
		v[1 + d] = (v[1 + d] + viscous * s->speed[d] * v[0]) * scale;
		turned[d] = v[1 + d] - s->speed[d] * v[0];
	}
	v[4] = (v[4] + conducting * s->energy * v[0] -
		c->heating * s->inverse * dot(s->speed, turned)) /
	       (c->diagonal + conducting);
}

/* What v at a point adds to the next ones along x, y, z; forward: 1, backward: -1. */
NPB_INLINE void spread(const struct lu_sweep *c, const struct state *s, const double v[CFD_FIELDS],
		       double forward, double to[3][CFD_FIELDS])
{
	const double flow = forward * c->convection;
	const double thin = CFD_C34 * c->curvature * s->inverse;
	const double pressure =
	    CFD_C2 * (v[4] - dot(s->speed, v + 1) + s->kinetic * v[0]); /* its change */
	const double enthalpy = CFD_C1 * s->energy - CFD_C2 * s->kinetic;
	double turned[3], heat;

	for (int d = 0; d < 3; d++) /* change of velocity, times density */
		turned[d] = v[1 + d] - s->speed[d] * v[0];
	heat = thin * (CFD_C15 * (v[4] - s->energy * v[0]) + (1 - CFD_C15) * dot(s->speed, turned));
	for (int d = 0; d < 3; d++) {
		const double speed = flow * s->speed[d], turn = flow * turned[d];

		to[d][0] = flow * v[1 + d] + c->diffusion[d] * v[0];
		for (int m = 0; m < 3; m++)
			to[d][1 + m] = speed * v[1 + m] + turn * s->speed[m] + thin * turned[m] +
				       c->diffusion[d] * v[1 + m];
		to[d][1 + d] += flow * pressure + (CFD_NORMAL - 1) * thin * turned[d];
		to[d][4] = speed * (v[4] + pressure) + turn * enthalpy + heat +
			   (CFD_NORMAL - 1) * thin * s->speed[d] * turned[d] +
			   c->diffusion[d] * v[4];
	}
}

NPB_INLINE void sweep_diagonal(const struct lu_sweep *restrict c, const struct diagonal *g,
			       bool lower)
{
	double *restrict point = g->point, *restrict x = g->x, *restrict y = g->y_to;
	double *restrict z = g->z;
	const double *restrict from = g->y_from;
	const ptrdiff_t n = c->lanes;
	const struct lu_sweep k = *c;
	const int last = g->last;

	CFD_ROW
	for (int j = g->first; j <= last; j++) {
		struct state s;
		double v[CFD_FIELDS], to[3][CFD_FIELDS];

		s.inverse = point[j];
		for (int d = 0; d < 3; d++)
			s.speed[d] = point[(LU_SPEED + d) * n + j];
		s.energy = point[LU_ENERGY * n + j];
		s.kinetic = 0.5 * dot(s.speed, s.speed);
		for (int m = 0; m < CFD_FIELDS; m++) {
			v[m] = x[m * n + j] + from[m * n + j] + z[m * n + j];
			if (lower)
				v[m] += point[(LU_CHANGE + m) * n + j];
		}
		solve_block(&k, &s, v);
		for (int m = 0; m < CFD_FIELDS; m++) {
			if (!lower)
				v[m] += point[(LU_CHANGE + m) * n + j];
			point[(LU_CHANGE + m) * n + j] = v[m];
		}
		spread(&k, &s, v, lower ? 1 : -1, to);
		for (int m = 0; m < CFD_FIELDS; m++) {
			x[m * n + j] = to[0][m];
			y[m * n + j] = to[1][m];
			z[m * n + j] = to[2][m];
		}
	}
}

/* Between a border and a lane. */
NPB_INLINE void take(const struct lu_sweep *c, double *lane, const double *border)
{
	for (int m = 0; m < CFD_FIELDS; m++)
		lane[m * c->lanes] = border[m];
}

NPB_INLINE void give(const struct lu_sweep *c, const double *lane, double *border)
{
	for (int m = 0; m < CFD_FIELDS; m++)
		border[m] = lane[m * c->lanes];
}

NPB_INLINE ptrdiff_t row(const struct lu_sweep *c, int sum)
{
	return sum < c->rows ? sum : sum - c->rows;
}

NPB_INLINE void sweep_plane(struct lu_sweep *c, int plane, bool lower)
{
	const int ni = c->n[0], nj = c->n[1], sums = ni + nj - 1;
	const int near = lower ? 0 : 1, step = lower ? -1 : 1;
	double *const *border = c->border;
	double *points = c->point + (ptrdiff_t)plane * c->rows * LU_VALUES * c->lanes + MARGIN;
	/* Where the first and the last points of a line are, in the order of the sweep. */
	const int i_in = lower ? 0 : ni - 1, j_in = lower ? 0 : nj - 1;
	const int i_out = ni - 1 - i_in, j_out = nj - 1 - j_in;
	const double *from_x = border[LU_WEST + near];
	const double *from_y = border[LU_SOUTH + near];
	double *to_x = border[LU_EAST - near];
	double *to_y = border[LU_NORTH - near];

	for (int count = 0; count < sums; count++) {
		const int sum = lower ? count : sums - 1 - count;
		double *y_from = c->y[count % 2] + MARGIN;
		struct diagonal g = {
		    .point = points + row(c, sum) * LU_VALUES * c->lanes,
		    .x = c->x + MARGIN,
		    .y_to = c->y[1 - count % 2] + MARGIN,
		    .z = c->z + row(c, sum) * CFD_FIELDS * c->lanes + MARGIN,
		    .y_from = y_from + step,
		    .first = sum < ni ? 0 : sum - ni + 1,
		    .last = sum < nj ? sum : nj - 1,
		};
		const int j_x = sum - i_in, i_y = sum - j_in, j_to = sum - i_out,
			  i_to = sum - j_out;

		if (j_x >= 0 && j_x < nj)
			take(c, g.x + j_x, from_x + j_x * CFD_FIELDS);
		if (i_y >= 0 && i_y < ni)
			take(c, y_from + j_in + step, from_y + i_y * CFD_FIELDS);
		sweep_diagonal(c, &g, lower);
		if (j_to >= 0 && j_to < nj)
			give(c, g.x + j_to, to_x + j_to * CFD_FIELDS);
		if (i_to >= 0 && i_to < ni)
			give(c, g.y_to + j_out, to_y + i_to * CFD_FIELDS);
	}
}

NPB_VECTOR void lu_sweep_lower(struct lu_sweep *c, int plane)
{
	sweep_plane(c, plane, true);
}

NPB_VECTOR void lu_sweep_upper(struct lu_sweep *c, int plane)
{
	sweep_plane(c, plane, false);
}

/* Nothing comes from before the first plane, nor over the borders of the grid. */
void lu_begin_sweep(struct lu_sweep *c)
{
	memset(c->z, 0, (size_t)c->rows * CFD_FIELDS * (size_t)c->lanes * sizeof(double));
	for (int side = 0; side < LU_SIDES; side++)
		memset(c->border[side], 0,
		       (size_t)c->n[side < LU_SOUTH] * CFD_FIELDS * sizeof(double));
}

NPB_VECTOR void lu_load_plane(struct lu_sweep *c, const struct cfd_box *box, int k)
{
	const ptrdiff_t n = c->lanes, skew = box->stride[1] - 1;
	double *plane = c->point + (ptrdiff_t)k * c->rows * LU_VALUES * n + MARGIN;
	double *restrict squares = c->squares;
	const ptrdiff_t at = cfd_at(box, box->low[0], box->low[1], box->low[2] + k);

	for (int sum = 0; sum < c->n[0] + c->n[1] - 1; sum++) {
		double *restrict to = plane + row(c, sum) * LU_VALUES * n;
		const int first = sum < c->n[0] ? 0 : sum - c->n[0] + 1;
		const int last = sum < c->n[1] ? sum : c->n[1] - 1;
		const double *restrict inverse = box->inverse + at + sum;
		const double *restrict energy = box->u[4] + at + sum;

		for (int j = first; j <= last; j++) {
			to[j] = inverse[j * skew];
			to[LU_ENERGY * n + j] = energy[j * skew] * inverse[j * skew];
		}
		for (int d = 0; d < 3; d++) {
			const double *restrict speed = box->speed[d] + at + sum;

			for (int j = first; j <= last; j++)
				to[(LU_SPEED + d) * n + j] = speed[j * skew];
		}
		for (int m = 0; m < CFD_FIELDS; m++) {
			const double *restrict rate = box->rate[m] + at + sum;

			for (int j = first; j <= last; j++) {
				to[(LU_CHANGE + m) * n + j] = rate[j * skew];
				squares[j] += rate[j * skew] * rate[j * skew];
			}
		}
	}
}

double lu_take_squares(struct lu_sweep *c)
{
	double sum = 0;

	for (int j = 0; j < c->n[1]; j++) {
		sum += c->squares[j];
		c->squares[j] = 0;
	}
	return sum;
}

NPB_VECTOR void lu_store_plane(const struct lu_sweep *c, const struct cfd_box *box, int k)
{
	const ptrdiff_t n = c->lanes, skew = box->stride[1] - 1;
	const double *plane = c->point + (ptrdiff_t)k * c->rows * LU_VALUES * n + MARGIN;
	const ptrdiff_t at = cfd_at(box, box->low[0], box->low[1], box->low[2] + k);

	for (int sum = 0; sum < c->n[0] + c->n[1] - 1; sum++) {
		const double *restrict from = plane + row(c, sum) * LU_VALUES * n;
		const int first = sum < c->n[0] ? 0 : sum - c->n[0] + 1;
		const int last = sum < c->n[1] ? sum : c->n[1] - 1;

		for (int m = 0; m < CFD_FIELDS; m++) {
			double *restrict u = box->u[m] + at + sum;

			for (int j = first; j <= last; j++)
				u[j * skew] += LU_GAIN * from[(LU_CHANGE + m) * n + j];
		}
	}
}

static void set_coefficients(struct lu_sweep *c, const struct cfd_box *box, double step)
{
	const double twice = 2 * step * box->axis[0].curvature;

	/* The same in all directions, as the grid is a cube. */
	c->diagonal = 1;
	for (int d = 0; d < 3; d++) {
		c->diagonal += twice * box->axis[d].diffusion;
		c->diffusion[d] = LU_OMEGA * step * box->axis[d].curvature * box->axis[d].diffusion;
	}
	c->viscous = twice * CFD_C34 * (2 + CFD_NORMAL);
	c->conducting = twice * CFD_C34 * CFD_C15 * 3;
	c->heating = twice * CFD_C34 * (3 * (1 - CFD_C15) + CFD_NORMAL - 1);
	c->convection = LU_OMEGA * step * box->axis[0].convection;
	c->curvature = LU_OMEGA * step * box->axis[0].curvature;
}

void lu_open_sweep(struct lu_sweep *c, const struct cfd_box *box, double step)
{
	enum { LINE = 8 };
	size_t vector;

	for (int d = 0; d < 3; d++)
		c->n[d] = box->high[d] - box->low[d];
	c->rows = c->n[0] > c->n[1] ? c->n[0] : c->n[1];
	c->lanes = (c->n[1] + 2 * MARGIN + LINE - 1) / LINE * LINE;
	vector = (size_t)CFD_FIELDS * (size_t)c->lanes;
	c->point = npb_alloc((size_t)c->n[2] * (size_t)c->rows * LU_VALUES * (size_t)c->lanes,
			     sizeof(double));
	c->x = npb_alloc(vector, sizeof(double));
	c->y[0] = npb_alloc(vector, sizeof(double));
	c->y[1] = npb_alloc(vector, sizeof(double));
	c->squares = npb_alloc((size_t)c->lanes, sizeof(double));
	c->z = npb_alloc((size_t)c->rows * vector, sizeof(double));
	for (int side = 0; side < LU_SIDES; side++)
		c->border[side] =
		    npb_alloc((size_t)c->n[side < LU_SOUTH] * CFD_FIELDS, sizeof(double));
	set_coefficients(c, box, step);
}

void lu_close_sweep(struct lu_sweep *c)
{
	npb_free(c->point);
	npb_free(c->x);
	npb_free(c->y[0]);
	npb_free(c->y[1]);
	npb_free(c->z);
	npb_free(c->squares);
	for (int side = 0; side < LU_SIDES; side++)
		npb_free(c->border[side]);
}
