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
 * three of them with the same matrix: sp_solve.c; the transformations:
 * sp_characteristic_variables.c.
 *
 * Distributed: the multipartition of multipartition.h. Communicated: per step two layers of u on
 * all faces of the boxes; in each sweep two rows (22 numbers) per line from box to box upwards, and
 * 2 x 5 results downwards.
 */
#include "sp.h"

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
