/*
 * SP, "scalar pentadiagonal" (the report, chapter 3, the simulated CFD application SP).
 *
 * Solved: the equations of cfd.h by implicit time steps, approximately factored and made diagonal:
 * with the rate R = dt dU/dt of the old values,
 *
 *   Tx (I - dt Px) Tx^-1 Ty (I - dt Py) Ty^-1 Tz (I - dt Pz) Tz^-1 dU = R,  U(new) = U + dU
 *
 * where Tx has the eigenvectors of the convective Jacobian along x and Px, diagonal in the five
 * components, its eigenvalues v, v, v, v + c, v - c (c: the speed of sound), the diffusion and the
 * fourth-order dissipation along x. So each factor is five scalar pentadiagonal systems per line,
 * three of them with the same matrix.
 *
 * Distributed: the multipartition of multipartition.h. Communicated: per step two layers of u on
 * all faces of the boxes; in each sweep two rows (22 numbers) per line from box to box upwards, and
 * 2 x 5 results downwards.
 */
#include <string.h>

#include "multipartition.h"

enum {
	SP_SYSTEMS = 3,		     /* matrices per line: waves of speed v, v + c and v - c */
	SP_ROW = 2 * SP_SYSTEMS + 5, /* what elimination leaves of a row */
	SP_CARRY = 2 * SP_ROW,	     /* two rows */
	SP_ANSWER = 2 * CFD_FIELDS
};

/*
 * The changes of variables of SP (sp.c): Tx^-1 before the sweep along x and
 * Tz after that along z. Those between the sweeps, Tx^-1 Ty and Ty^-1 Tz, have constant elements
 * and are part of the solver's way down.
 */

#define ROOT_HALF 0.70710678118654752440 /* sqrt(1/2) */

/*
 * Tx^-1 r. With the velocity (x, y, z), c the speed of sound and w the density's inverse:
 * t = (c1 - 1) / c^2 (|v|^2/2 r1 - x r2 - y r3 - z r4 + r5) is the change of pressure by c^2; the
 * first wave carries entropy, two carry shear, two are sound.
 */
NPB_VECTOR static void sp_to_waves(const struct cfd_box *box, int j, int k)
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

/* And from those along z back: u += the change. */
NPB_VECTOR static void sp_from_waves(const struct cfd_box *box)
{
	const int n = box->high[0] - box->low[0];

	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++)
			from_waves(box, cfd_at(box, box->low[0], j, k), n);
	}
}

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

/* The pentadiagonal systems, and behind each the way to the next direction's variables. */
static const struct mp_solver sp_solver = {
    .store = SP_ROW, .carry = SP_CARRY, .answer = SP_ANSWER, .up = up, .down = down};

static const struct mp_problem problems[NPB_CLASSES] = {
    [NPB_S] = {.n = 12,
	       .iterations = 100,
	       .dt = 0.015,
	       .residual = {2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
			    1.5840557224455615e-02, 3.4849040609362460e-02},
	       .error = {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
			 1.5750704994480102e-05, 3.4177666183390531e-05}},
    [NPB_W] = {.n = 36,
	       .iterations = 400,
	       .dt = 0.0015,
	       .residual = {0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03,
			    0.2887475409984e-03, 0.3143611161242e-02},
	       .error = {0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04,
			 0.1128838671535e-04, 0.1212845639773e-03}},
    [NPB_A] = {.n = 64,
	       .iterations = 400,
	       .dt = 0.0015,
	       .residual = {2.4799822399300195, 1.1276337964368832, 1.5028977888770491,
			    1.4217816211695179, 2.1292113035138280},
	       .error = {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
			 4.7671093939528255e-05, 1.3621613399213001e-04}},
    [NPB_B] = {.n = 102,
	       .iterations = 400,
	       .dt = 0.001,
	       .residual = {0.6903293579998e+02, 0.3095134488084e+02, 0.4103336647017e+02,
			    0.3864769009604e+02, 0.5643482272596e+02},
	       .error = {0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02,
			 0.1694479428231e-02, 0.1847456263981e-01}},
    [NPB_C] = {.n = 162,
	       .iterations = 400,
	       .dt = 0.00067,
	       .residual = {0.5881691581829e+03, 0.2454417603569e+03, 0.3293829191851e+03,
			    0.3081924971891e+03, 0.4597223799176e+03},
	       .error = {0.2598120500183e+00, 0.2590888922315e-01, 0.5132886416320e-01,
			 0.4806073419454e-01, 0.5483377491301e+00}},
    [NPB_D] = {.n = 408,
	       .iterations = 500,
	       .dt = 0.0003,
	       .residual = {0.1044696216887e+05, 0.3204427762578e+04, 0.4648680733032e+04,
			    0.4238923283697e+04, 0.7588412036136e+04},
	       .error = {0.5089471423669e+01, 0.5323514855894e+00, 0.1187051008971e+01,
			 0.1083734951938e+01, 0.1164108338568e+02}},
};

static double set_rates(const struct cfd_box *box, double dt)
{
	double squares = 0;

	cfd_primitives(box);
	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++) {
			cfd_rate_row(box, j, k, dt);
			squares += cfd_row_squares(box, j, k);
			sp_to_waves(box, j, k);
		}
	}
	return squares;
}

static void step(struct mp_grid *grid, double dt)
{
	mp_exchange(grid);
	for (int z = 0; z < grid->q; z++)
		grid->squares += set_rates(&grid->box[z], dt);
	for (int d = 0; d < 3; d++)
		mp_sweep(grid, d, &sp_solver, dt);
	for (int z = 0; z < grid->q; z++)
		sp_from_waves(&grid->box[z]);
}

static struct mp_sizes sizes_of(enum npb_class class)
{
	return (struct mp_sizes){
	    .n = problems[class].n, .sound = true, .store = SP_ROW, .carry = SP_CARRY};
}

static void run_sp(struct npb_run *run)
{
	const struct mp_sizes sizes = sizes_of(run->class);
	const double n = sizes.n;

	mp_run(run, &problems[run->class], &sizes, step);
	/* Operations as NPB counts them. */
	run->mega_ops =
	    1e-6 * run->iterations * (((881.174 * n - 4683.91) * n + 11484.5) * n - 19272.4);
}

static void describe_sp(struct npb_run *run)
{
	for (int d = 0; d < 3; d++)
		run->size[d] = problems[run->class].n;
	run->iterations = problems[run->class].iterations;
}

static int most_ranks_sp(enum npb_class class)
{
	return mp_most_ranks(problems[class].n);
}

static uint64_t memory_sp(enum npb_class class, int ranks)
{
	const struct mp_sizes sizes = sizes_of(class);

	return mp_bytes(&sizes, ranks);
}

const struct npb_kernel npb_kernel = {
    .name = "SP",
    .operations = "floating point",
    .rule = NPB_SQUARE,
    .most_ranks = most_ranks_sp,
    .memory_bytes = memory_sp,
    .describe = describe_sp,
    .run = run_sp,
};
