/*
 * The pentadiagonal systems of SP, eight lines at once, one in each lane of the vectors:
 *
 *   a x(i-2) + b x(i-1) + c x(i) + d x(i+1) + e x(i+2) = r(i)
 *
 *   a = e = eps,  b = -dt/(2h) s(i-1) - D(i-1) - 4 eps,  d = dt/(2h) s(i+1) - D(i+1) - 4 eps
 *   c = 1 + 2 D(i) + 6 eps,  eps = dt times the dissipation
 *
 * s is the wave's speed v, v + c or v - c, and D = dt/h^2 (d + k4 c1 c5 / density) the largest of
 * the diffusion coefficients. Next to the boundary eps has the other weights of
 * cfd_right_hand_side.c.
 */
#include <string.h>

#include "sp.h"

#define ROOT_HALF 0.70710678118654752440 /* sqrt(1/2) */

/* What elimination leaves of a row of the systems: x(i) + d x(i+1) + e x(i+2) = r. */
struct row {
	mp_lane d[SP_SYSTEMS], e[SP_SYSTEMS], r[CFD_FIELDS];
};

/* Of one point: the two sides of b or d, and of c. */
struct point {
	mp_lane speed, sound; /* times dt/(2h) */
	mp_lane diffusion;    /* times dt/h^2 */
};

/* Which matrix a component has. */
NPB_INLINE int system_of(int f)
{
	return f < 3 ? 0 : f - 2;
}

NPB_INLINE void get_point(const struct mp_lines *lines, double dt, int row, struct point *p)
{
	const struct cfd_box *box = lines->box;
	const struct cfd_axis *axis = &box->axis[lines->d];

	mp_get(lines, box->speed[lines->d], row, &p->speed);
	mp_get(lines, box->sound, row, &p->sound);
	mp_get(lines, box->inverse, row, &p->diffusion);
	p->speed *= dt * axis->convection;
	p->sound *= dt * axis->convection;
	p->diffusion = dt * axis->curvature * (CFD_C34 * CFD_C15 * p->diffusion + axis->diffusion);
}

/* Weights of the dissipation for x(i-2) ... x(i+2). */
struct weights {
	double a, b, c, d, e;
};

NPB_INLINE struct weights weights_at(const struct mp_lines *lines, double dt, int i)
{
	const int below = lines->first + i, above = lines->box->total[0] - 1 - below;
	const double eps = dt * lines->box->dissipation;
	struct weights w = {eps, -4 * eps, 6 * eps, -4 * eps, eps};

	if (below <= 2)
		w.a = 0;
	if (above <= 2)
		w.e = 0;
	if (below == 1 || above == 1)
		w.c = 5 * eps;
	return w;
}

/* The row i, with the rows i - 2 and i - 1 eliminated. */
NPB_INLINE void eliminate(const struct mp_lines *lines, double dt, int i, const struct point p[3],
			  const struct row *two, const struct row *one, struct row *to)
{
	const struct weights w = weights_at(lines, dt, i);
	const mp_lane below = w.b - p[0].diffusion, above = w.d - p[2].diffusion;
	mp_lane b[SP_SYSTEMS], pivot[SP_SYSTEMS], right;

#pragma GCC unroll 3
	for (int s = 0; s < SP_SYSTEMS; s++) {
		const double sign = s == 0 ? 0 : s == 1 ? 1 : -1;
		mp_lane lower = below - p[0].speed, upper = above + p[2].speed;

		if (s > 0) {
			lower -= sign * p[0].sound;
			upper += sign * p[2].sound;
		}
		b[s] = lower - w.a * two->d[s];
		pivot[s] = 1 / (1 + w.c + 2 * p[1].diffusion - w.a * two->e[s] - b[s] * one->d[s]);
		to->d[s] = pivot[s] * (upper - b[s] * one->e[s]);
		to->e[s] = pivot[s] * w.e;
	}
#pragma GCC unroll 5
	for (int f = 0; f < CFD_FIELDS; f++) {
		const int s = system_of(f);

		mp_get(lines, lines->box->rate[f], i, &right);
		to->r[f] = pivot[s] * (right - w.a * two->r[f] - b[s] * one->r[f]);
	}
}

NPB_VECTOR static void up(const struct mp_lines *lines, double dt, mp_lane *restrict store,
			  const mp_lane *from, mp_lane *to)
{
	const struct row *two = (const struct row *)from, *one = two + 1;
	struct row *row = (struct row *)store;
	struct point p[3];

	get_point(lines, dt, -1, &p[0]);
	get_point(lines, dt, 0, &p[1]);
	for (int i = 0; i < lines->rows; i++) {
		get_point(lines, dt, i + 1, &p[2]);
		eliminate(lines, dt, i, p, two, one, row);
		two = one;
		one = row++;
		p[0] = p[1];
		p[1] = p[2];
	}
	memcpy(to, two, sizeof(*two));
	memcpy(to + SP_ROW, one, sizeof(*one));
}

/*
 * The results in the variables of the next direction: Tx^-1 Ty, then Ty^-1 Tz; nothing after z.
 */
NPB_INLINE void turn(int d, const mp_lane x[CFD_FIELDS], mp_lane out[CFD_FIELDS])
{
	const mp_lane sum = 0.5 * (x[3] + x[4]), difference = ROOT_HALF * (x[3] - x[4]);

	memcpy(out, x, CFD_FIELDS * sizeof(*out));
	if (d == 0) {
		out[0] = -x[1];
		out[1] = x[0];
		out[2] = difference;
		out[3] = sum - ROOT_HALF * x[2];
		out[4] = sum + ROOT_HALF * x[2];
	} else if (d == 1) {
		out[0] = difference;
		out[1] = -x[2];
		out[2] = x[1];
		out[3] = sum - ROOT_HALF * x[0];
		out[4] = sum + ROOT_HALF * x[0];
	}
}

/* x(i) = r - d x(i+1) - e x(i+2); the results take the place of the right side. */
NPB_VECTOR static void down(const struct mp_lines *lines, double dt, const mp_lane *restrict store,
			    const mp_lane *from, mp_lane *to)
{
	mp_lane x[CFD_FIELDS], one[CFD_FIELDS], two[CFD_FIELDS], out[CFD_FIELDS];

	(void)dt;
	memcpy(one, from, sizeof(one));
	memcpy(two, from + CFD_FIELDS, sizeof(two));
	for (int i = lines->rows - 1; i >= 0; i--) {
		const struct row *row = (const struct row *)store + i;

#pragma GCC unroll 5
		for (int f = 0; f < CFD_FIELDS; f++)
			x[f] = row->r[f] - row->d[system_of(f)] * one[f] -
			       row->e[system_of(f)] * two[f];
		turn(lines->d, x, out);
#pragma GCC unroll 5
		for (int f = 0; f < CFD_FIELDS; f++)
			mp_put(lines, &out[f], lines->box->rate[f], i);
		memcpy(two, one, sizeof(two));
		memcpy(one, x, sizeof(one));
	}
	memcpy(to, one, sizeof(one));
	memcpy(to + CFD_FIELDS, two, sizeof(two));
}

const struct mp_solver sp_solver = {
    .store = SP_ROW, .carry = SP_CARRY, .answer = SP_ANSWER, .up = up, .down = down};
