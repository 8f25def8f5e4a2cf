/*
 * The changes of variables of SP (sp.c): Tx^-1 before the sweep along x and
 * Tz after that along z. Those between the sweeps, Tx^-1 Ty and Ty^-1 Tz, have constant elements
 * and are part of the solver's way down.
 */
#include "sp.h"

#define ROOT_HALF 0.70710678118654752440 /* sqrt(1/2) */

/*
 * Tx^-1 r. With the velocity (x, y, z), c the speed of sound and w the density's inverse:
 * t = (c1 - 1) / c^2 (|v|^2/2 r1 - x r2 - y r3 - z r4 + r5) is the change of pressure by c^2; the
 * first wave carries entropy, two carry shear, two are sound.
 */
NPB_VECTOR void sp_to_waves(const struct cfd_box *box, int j, int k)
{
	const ptrdiff_t at = cfd_at(box, box->low[0], j, k);
	const int n = cfd_whole(box->high[0] - box->low[0]);
	const double *restrict x = box->speed[0] + at, *restrict y = box->speed[1] + at;
	const double *restrict z = box->speed[2] + at, *restrict kinetic = box->kinetic + at;
	const double *restrict inverse = box->inverse + at, *restrict sound = box->sound + at;
	double *restrict r0 = box->rate[0] + at, *restrict r1 = box->rate[1] + at;
	double *restrict r2 = box->rate[2] + at, *restrict r3 = box->rate[3] + at;
	double *restrict r4 = box->rate[4] + at;

	CFD_ROW
	for (int i = 0; i < n; i++) {
		const double mass = r0[i], w = inverse[i], c = sound[i];
		const double t =
		    CFD_C2 / (c * c) *
		    (kinetic[i] * mass - x[i] * r1[i] - y[i] * r2[i] - z[i] * r3[i] + r4[i]);
		const double flow = ROOT_HALF * w * (x[i] * mass - r1[i]);
		const double press = ROOT_HALF * w * c * t;

		r0[i] = mass - t;
		r1[i] = -w * (z[i] * mass - r3[i]);
		r3[i] = press - flow;
		r4[i] = press + flow;
		r2[i] = w * (y[i] * mass - r2[i]);
	}
}

/* u += Tz r */
NPB_INLINE void from_waves(const struct cfd_box *box, ptrdiff_t at, int n)
{
	const double *restrict x = box->speed[0] + at, *restrict y = box->speed[1] + at;
	const double *restrict z = box->speed[2] + at, *restrict kinetic = box->kinetic + at;
	const double *restrict sound = box->sound + at;
	const double *restrict r0 = box->rate[0] + at, *restrict r1 = box->rate[1] + at;
	const double *restrict r2 = box->rate[2] + at, *restrict r3 = box->rate[3] + at;
	const double *restrict r4 = box->rate[4] + at;
	double *restrict u0 = box->u[0] + at, *restrict u1 = box->u[1] + at;
	double *restrict u2 = box->u[2] + at, *restrict u3 = box->u[3] + at;
	double *restrict u4 = box->u[4] + at;

	CFD_ROW
	for (int i = 0; i < n; i++) {
		const double density = u0[i], c = sound[i];
		const double press = ROOT_HALF * density / c * (r3[i] + r4[i]);
		const double flow = ROOT_HALF * density * (r3[i] - r4[i]);
		const double mass = r2[i] + press;
		const double a = density * r0[i], b = density * r1[i];

		u0[i] += mass;
		u1[i] += x[i] * mass - b;
		u2[i] += y[i] * mass + a;
		u3[i] += z[i] * mass + flow;
		u4[i] +=
		    y[i] * a - x[i] * b + kinetic[i] * mass + c * c * press / CFD_C2 + z[i] * flow;
	}
}

NPB_VECTOR void sp_from_waves(const struct cfd_box *box)
{
	const int n = box->high[0] - box->low[0];

	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++)
			from_waves(box, cfd_at(box, box->low[0], j, k), n);
	}
}
