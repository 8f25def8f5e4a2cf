/*
 * BT, "block tridiagonal" (the report, chapter 3, the simulated CFD application BT).
 *
 * Solved: the equations of cfd.h by implicit time steps, approximately factored (Beam and
 * Warming): with the rate R = dt dU/dt of the old values,
 *
 *   (I - dt Lx)(I - dt Ly)(I - dt Lz) dU = R,   U(new) = U + dU
 *
 * where Lx is the linearised convection, viscosity and diffusion along x alone. Each factor is one
 * block-tridiagonal system of 5 x 5 blocks per line of the grid: bt_solve.c.
 *
 * Distributed: the multipartition of multipartition.h. Communicated: per step two layers of u on
 * all faces of the boxes; in each sweep a 5 x 5 block and 5 right sides per line from box to box
 * upwards, and 5 results downwards.
 */
#include "bt.h"

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
