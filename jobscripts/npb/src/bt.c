/*
 * BT, "block tridiagonal" (the report, chapter 3, the simulated CFD application BT).
 *
 * Solved: the equations of cfd.h by implicit time steps, approximately factored (Beam and
 * Warming): with the rate R = dt dU/dt of the old values,
 *
 *   (I - dt Lx)(I - dt Ly)(I - dt Lz) dU = R,   U(new) = U + dU
 *
 * where Lx is the linearised convection, viscosity and diffusion along x alone. Each factor is one
 * block-tridiagonal system of 5 x 5 blocks per line of the grid.
 *
 * Distributed: the multipartition of multipartition.h. Communicated: per step two layers of u on
 * all faces of the boxes; in each sweep a 5 x 5 block and 5 right sides per line from box to box
 * upwards, and 5 results downwards.
 */
#include <string.h>

#include "multipartition.h"

enum {
	BT_COLUMNS = CFD_FIELDS + 1, /* a block and the right side */
	BT_STORE = CFD_FIELDS * BT_COLUMNS
};

/*
 * The block-tridiagonal systems of BT, eight lines at once, one in each lane of the vectors:
 *
 *   A(i) x(i-1) + B(i) x(i) + C(i) x(i+1) = r(i)
 *   A(i) = -dt/(2h) F(i-1) - dt/h^2 (N(i-1) + D),  B(i) = I + 2 dt/h^2 (N(i) + D),
 *   C(i) =  dt/(2h) F(i+1) - dt/h^2 (N(i+1) + D)
 *
 * F and N are the Jacobians of the convective and of the viscous flux along the line,
 * D the diffusion. With the momenta in the order (along the line, across, across) they are the
 * same for all directions. Their zeros are left out.
 */

/* State at one point of the lines; momenta and velocities in the line's order. */
struct point {
	mp_lane inverse, along, across[2], kinetic, energy; /* energy: per mass */
};

/* Rows 0, 2 and 3 have zeros, which are not kept: (0,2-4), (2,3-4), (3,2), (3,4). */
struct block {
	mp_lane at[CFD_FIELDS][CFD_FIELDS];
};

NPB_INLINE void get_point(const struct mp_lines *lines, int row, struct point *p)
{
	const struct cfd_box *box = lines->box;
	const int d = lines->d;

	mp_get(lines, box->inverse, row, &p->inverse);
	mp_get(lines, box->speed[d], row, &p->along);
	mp_get(lines, box->speed[(d + 1) % 3], row, &p->across[0]);
	mp_get(lines, box->speed[(d + 2) % 3], row, &p->across[1]);
	mp_get(lines, box->kinetic, row, &p->kinetic);
	mp_get(lines, box->u[4], row, &p->energy);
	p->energy *= p->inverse;
}

/* The fields of the right side in the line's order. */
NPB_INLINE int field_of(int d, int m)
{
	return m == 0 || m == 4 ? m : 1 + (d + m - 1) % 3;
}

/* factor * N + diagonal * I */
NPB_INLINE void set_viscous(struct block *b, const struct point *p, double factor, double diagonal)
{
	const mp_lane w = factor * CFD_C34 * p->inverse;

	b->at[0][0] = (mp_lane){0} + diagonal;
	b->at[1][0] = -CFD_NORMAL * w * p->along;
	b->at[1][1] = CFD_NORMAL * w + diagonal;
	b->at[2][0] = -w * p->across[0];
	b->at[2][2] = w + diagonal;
	b->at[3][0] = -w * p->across[1];
	b->at[3][3] = w + diagonal;
	b->at[4][0] =
	    -w * ((CFD_NORMAL - CFD_C15) * (p->along * p->along) +
		  (1 - CFD_C15) * (p->across[0] * p->across[0] + p->across[1] * p->across[1]) +
		  CFD_C15 * p->energy);
	b->at[4][1] = (CFD_NORMAL - CFD_C15) * w * p->along;
	b->at[4][2] = (1 - CFD_C15) * w * p->across[0];
	b->at[4][3] = (1 - CFD_C15) * w * p->across[1];
	b->at[4][4] = CFD_C15 * w + diagonal;
}

/* + factor * F */
NPB_INLINE void add_convection(struct block *b, const struct point *p, double factor)
{
	const mp_lane a = factor * p->along;

	b->at[0][1] = (mp_lane){0} + factor;
	b->at[1][0] += factor * CFD_C2 * p->kinetic - a * p->along;
	b->at[1][1] += (2 - CFD_C2) * a;
	b->at[1][2] = -factor * CFD_C2 * p->across[0];
	b->at[1][3] = -factor * CFD_C2 * p->across[1];
	b->at[1][4] = (mp_lane){0} + factor * CFD_C2;
	b->at[2][0] -= a * p->across[0];
	b->at[2][1] = factor * p->across[0];
	b->at[2][2] += a;
	b->at[3][0] -= a * p->across[1];
	b->at[3][1] = factor * p->across[1];
	b->at[3][3] += a;
	b->at[4][0] += (2 * CFD_C2 * p->kinetic - CFD_C1 * p->energy) * a;
	b->at[4][1] += factor * (CFD_C1 * p->energy - CFD_C2 * p->kinetic) - CFD_C2 * a * p->along;
	b->at[4][2] -= CFD_C2 * a * p->across[0];
	b->at[4][3] -= CFD_C2 * a * p->across[1];
	b->at[4][4] += CFD_C1 * a;
}

/*
 * The equations of one point with the row before eliminated: the columns of B, those of C, and
 * the right side.
 */
enum { UPPER = CFD_FIELDS, RIGHT = 2 * CFD_FIELDS, COLUMNS };

struct row {
	mp_lane at[CFD_FIELDS][COLUMNS];
};

/* Column `to` less A times column `from` of the row before. */
NPB_INLINE void subtract_product(const struct block *a, const mp_lane *before, int from,
				 struct row *m, int to)
{
	mp_lane p[CFD_FIELDS];

#pragma GCC unroll 5
	for (int i = 0; i < CFD_FIELDS; i++)
		p[i] = before[i * BT_COLUMNS + from];
	m->at[0][to] -= a->at[0][0] * p[0] + a->at[0][1] * p[1];
	m->at[1][to] -= a->at[1][0] * p[0] + a->at[1][1] * p[1] + a->at[1][2] * p[2] +
			a->at[1][3] * p[3] + a->at[1][4] * p[4];
	m->at[2][to] -= a->at[2][0] * p[0] + a->at[2][1] * p[1] + a->at[2][2] * p[2];
	m->at[3][to] -= a->at[3][0] * p[0] + a->at[3][1] * p[1] + a->at[3][3] * p[3];
	m->at[4][to] -= a->at[4][0] * p[0] + a->at[4][1] * p[1] + a->at[4][2] * p[2] +
			a->at[4][3] * p[3] + a->at[4][4] * p[4];
}

/* Whether (i, j) of a Jacobian is zero everywhere. */
NPB_INLINE bool is_zero(int i, int j)
{
	return (i == 0 && j > 1) || (i == 2 && j > 2) || (i == 3 && (j == 2 || j == 4));
}

/* Of B the convection is missing. */
NPB_INLINE bool is_zero_in_b(int i, int j)
{
	return is_zero(i, j) || (j > 0 && i != j && i != 4);
}

NPB_INLINE void put_blocks(struct row *m, const struct block *b, const struct block *c)
{
#pragma GCC unroll 5
	for (int i = 0; i < CFD_FIELDS; i++) {
#pragma GCC unroll 5
		for (int j = 0; j < CFD_FIELDS; j++) {
			m->at[i][j] = is_zero_in_b(i, j) ? (mp_lane){0} : b->at[i][j];
			m->at[i][UPPER + j] = is_zero(i, j) ? (mp_lane){0} : c->at[i][j];
		}
	}
}

/* Gauss-Jordan without pivoting: B becomes I. The first row of C has two elements only. */
NPB_INLINE void eliminate(struct row *m)
{
#pragma GCC unroll 5
	for (int k = 0; k < CFD_FIELDS; k++) {
		const mp_lane pivot = 1 / m->at[k][k];

#pragma GCC unroll 11
		for (int j = k + 1; j < COLUMNS; j++)
			m->at[k][j] *= pivot;
#pragma GCC unroll 5
		for (int i = k + 1; i < CFD_FIELDS; i++) {
#pragma GCC unroll 11
			for (int j = k + 1; j < COLUMNS; j++) {
				if (k > 0 || j < UPPER + 2 || j == RIGHT)
					m->at[i][j] -= m->at[i][k] * m->at[k][j];
			}
		}
	}
}

NPB_INLINE void substitute(struct row *m)
{
#pragma GCC unroll 5
	for (int k = CFD_FIELDS - 1; k > 0; k--) {
#pragma GCC unroll 5
		for (int i = 0; i < k; i++) {
#pragma GCC unroll 6
			for (int j = UPPER; j < COLUMNS; j++)
				m->at[i][j] -= m->at[i][k] * m->at[k][j];
		}
	}
}

/* The equations of a point, from the state there, before and after. */
NPB_INLINE void assemble(const struct mp_lines *lines, double dt, int i, const struct point p[3],
			 const mp_lane *before, struct row *m)
{
	const struct cfd_axis *axis = &lines->box->axis[lines->d];
	const double convective = dt * axis->convection, viscous = dt * axis->curvature;
	const double diffusion = viscous * axis->diffusion;
	struct block a, b, c;
	mp_lane right;

	set_viscous(&a, &p[0], -viscous, -diffusion);
	add_convection(&a, &p[0], -convective);
	set_viscous(&b, &p[1], 2 * viscous, 1 + 2 * diffusion);
	set_viscous(&c, &p[2], -viscous, -diffusion);
	add_convection(&c, &p[2], convective);
	put_blocks(m, &b, &c);
#pragma GCC unroll 5
	for (int f = 0; f < CFD_FIELDS; f++) {
		mp_get(lines, lines->box->rate[field_of(lines->d, f)], i, &right);
		m->at[f][RIGHT] = right;
	}
#pragma GCC unroll 5
	for (int f = 0; f < CFD_FIELDS; f++)
		subtract_product(&a, before, f, m, f);
	subtract_product(&a, before, CFD_FIELDS, m, RIGHT);
}

NPB_INLINE void keep(const struct row *m, mp_lane *store)
{
#pragma GCC unroll 5
	for (int i = 0; i < CFD_FIELDS; i++) {
#pragma GCC unroll 6
		for (int j = 0; j < BT_COLUMNS; j++)
			store[i * BT_COLUMNS + j] = m->at[i][UPPER + j];
	}
}

NPB_VECTOR static void up(const struct mp_lines *lines, double dt, mp_lane *restrict store,
			  const mp_lane *from, mp_lane *to)
{
	struct point p[3];
	struct row m;

	get_point(lines, -1, &p[0]);
	get_point(lines, 0, &p[1]);
	for (int i = 0; i < lines->rows; i++) {
		get_point(lines, i + 1, &p[2]);
		assemble(lines, dt, i, p, from, &m);
		eliminate(&m);
		substitute(&m);
		keep(&m, store);
		from = store;
		store += BT_STORE;
		p[0] = p[1];
		p[1] = p[2];
	}
	memcpy(to, from, BT_STORE * sizeof(*to));
}

/* x(i) = r(i) - C(i) x(i+1); the results take the place of the right side. */
NPB_VECTOR static void down(const struct mp_lines *lines, double dt, const mp_lane *restrict store,
			    const mp_lane *from, mp_lane *to)
{
	mp_lane x[CFD_FIELDS], next[CFD_FIELDS];

	(void)dt;
	memcpy(next, from, sizeof(next));
	for (int i = lines->rows - 1; i >= 0; i--) {
		const mp_lane *row = store + (ptrdiff_t)i * BT_STORE;

#pragma GCC unroll 5
		for (int f = 0; f < CFD_FIELDS; f++) {
			const mp_lane *c = row + f * BT_COLUMNS;

			x[f] = c[CFD_FIELDS] - (c[0] * next[0] + c[1] * next[1] + c[2] * next[2] +
						c[3] * next[3] + c[4] * next[4]);
			mp_put(lines, &x[f], lines->box->rate[field_of(lines->d, f)], i);
		}
		memcpy(next, x, sizeof(next));
	}
	memcpy(to, next, sizeof(next));
}

/* The block-tridiagonal systems; the carry is the last row: its upper block and right side. */
static const struct mp_solver bt_solver = {
    .store = BT_STORE, .carry = BT_STORE, .answer = CFD_FIELDS, .up = up, .down = down};

static const struct mp_problem problems[NPB_CLASSES] = {
    [NPB_S] = {.n = 12,
	       .iterations = 60,
	       .dt = 0.01,
	       .residual = {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
			    2.6436421275166801e-02, 1.9211784131744430e-01},
	       .error = {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
			 7.3821238632439731e-05, 8.9269630987491446e-04}},
    [NPB_W] = {.n = 24,
	       .iterations = 200,
	       .dt = 0.0008,
	       .residual = {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02,
			    0.2469174937669e+02, 0.2638427874317e+03},
	       .error = {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01,
			 0.9235878729944e+00, 0.1018045837718e+02}},
    [NPB_A] = {.n = 64,
	       .iterations = 200,
	       .dt = 0.0008,
	       .residual = {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
			    2.3665622544678910e+01, 2.5278963211748344e+02},
	       .error = {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
			 8.8302063039765474e-01, 9.7379901770829278e+00}},
    [NPB_B] = {.n = 102,
	       .iterations = 200,
	       .dt = 0.0003,
	       .residual = {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02,
			    3.2485447959084092e+02, 3.2707541254659363e+03},
	       .error = {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01,
			 1.2006925323559144e+01, 1.2459576151035986e+02}},
    [NPB_C] = {.n = 162,
	       .iterations = 200,
	       .dt = 0.0001,
	       .residual = {0.62398116551764615e+04, 0.50793239190423964e+03,
			    0.15423530093013596e+04, 0.13302387929291190e+04,
			    0.11604087428436455e+05},
	       .error = {0.16462008369091265e+03, 0.11497107903824313e+02, 0.41207446207461508e+02,
			 0.37087651059694167e+02, 0.36211053051841265e+03}},
    [NPB_D] = {.n = 408,
	       .iterations = 250,
	       .dt = 0.00002,
	       .residual = {0.2533188551738e+05, 0.2346393716980e+04, 0.6294554366904e+04,
			    0.5352565376030e+04, 0.3905864038618e+05},
	       .error = {0.3100009377557e+03, 0.2424086324913e+02, 0.7782212022645e+02,
			 0.6835623860116e+02, 0.6065737200368e+03}},
};

static void step(struct mp_grid *grid, double dt)
{
	mp_exchange(grid);
	for (int z = 0; z < grid->q; z++) {
		cfd_primitives(&grid->box[z]);
		grid->squares += cfd_rate(&grid->box[z], dt);
	}
	for (int d = 0; d < 3; d++)
		mp_sweep(grid, d, &bt_solver, dt);
	for (int z = 0; z < grid->q; z++)
		cfd_add_rate(&grid->box[z]);
}

static struct mp_sizes sizes_of(enum npb_class class)
{
	return (struct mp_sizes){.n = problems[class].n, .store = BT_STORE, .carry = BT_STORE};
}

static void run_bt(struct npb_run *run)
{
	const struct mp_sizes sizes = sizes_of(run->class);
	const double n = sizes.n;

	mp_run(run, &problems[run->class], &sizes, step);
	/* Operations as NPB counts them. */
	run->mega_ops = 1e-6 * run->iterations * n * ((3478.8 * n - 17655.7) * n + 28023.7);
}

static void describe_bt(struct npb_run *run)
{
	for (int d = 0; d < 3; d++)
		run->size[d] = problems[run->class].n;
	run->iterations = problems[run->class].iterations;
}

static int most_ranks_bt(enum npb_class class)
{
	return mp_most_ranks(problems[class].n);
}

static uint64_t memory_bt(enum npb_class class, int ranks)
{
	const struct mp_sizes sizes = sizes_of(class);

	return mp_bytes(&sizes, ranks);
}

const struct npb_kernel npb_kernel = {
    .name = "BT",
    .operations = "floating point",
    .rule = NPB_SQUARE,
    .most_ranks = most_ranks_bt,
    .memory_bytes = memory_bt,
    .describe = describe_bt,
    .run = run_bt,
};
