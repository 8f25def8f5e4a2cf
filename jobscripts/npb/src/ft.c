/*
 * FT, "Fourier transform" (the report, section 2.2.4, kernel FT).
 *
 * Solved: the diffusion equation du/dt = alpha div grad u on a periodic grid from random complex
 * numbers: their transform V, once; then for t = 1, 2 ... W(t) = exp(-4 alpha pi^2 t |k|^2) V and
 * its transform back, of which a checksum of 1024 points is compared. As |k|^2 = kx^2 + ky^2 + kz^2
 * the exponential is a product of three, which come from tables.
 *
 * Distributed: in space y is divided, in the space of frequencies x. Lines along x and z are
 * transformed on the one side, lines along y on the other.
 *
 * Communicated: one MPI_Alltoall per transform, of blocks that the transforms before it write as
 * they are sent and those after it read as they came; one MPI_Allreduce of all checksums at the
 * end.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ft.h"
#include "npb.h"

/* The official checksums of FT, real and imaginary part after each step. */

static const double class_s[][2] = {
    {5.546087004964e2, 4.845363331978e2}, {5.546385409189e2, 4.865304269511e2},
    {5.546148406171e2, 4.883910722336e2}, {5.545423607415e2, 4.901273169046e2},
    {5.544255039624e2, 4.917475857993e2}, {5.542683411902e2, 4.932597244941e2},
};

static const double class_w[][2] = {
    {5.673612178944e2, 5.293246849175e2}, {5.631436885271e2, 5.282149986629e2},
    {5.594024089970e2, 5.270996558037e2}, {5.560698047020e2, 5.260027904925e2},
    {5.530898991250e2, 5.249400845633e2}, {5.504159734538e2, 5.239212247086e2},
};

static const double class_a[][2] = {
    {5.046735008193e2, 5.114047905510e2}, {5.059412319734e2, 5.098809666433e2},
    {5.069376896287e2, 5.098144042213e2}, {5.077892868474e2, 5.101336130759e2},
    {5.085233095391e2, 5.104914655194e2}, {5.091487099959e2, 5.107917842803e2},
};

static const double class_b[][2] = {
    {5.177643571579e2, 5.077803458597e2}, {5.154521291263e2, 5.088249431599e2},
    {5.146409228649e2, 5.096208912659e2}, {5.142378756213e2, 5.101023387619e2},
    {5.139626667737e2, 5.103976610617e2}, {5.137423460082e2, 5.105948019802e2},
    {5.135547056878e2, 5.107404165783e2}, {5.133910925466e2, 5.108576573661e2},
    {5.132470705390e2, 5.109577278523e2}, {5.131197729984e2, 5.110460304483e2},
    {5.130070319283e2, 5.111252433800e2}, {5.129070537032e2, 5.111968077718e2},
    {5.128182883502e2, 5.112616233064e2}, {5.127393733383e2, 5.113203605551e2},
    {5.126691062020e2, 5.113735928093e2}, {5.126064276004e2, 5.114218460548e2},
    {5.125504076570e2, 5.114656139760e2}, {5.125002331720e2, 5.115053595966e2},
    {5.124551951846e2, 5.115415130407e2}, {5.124146770029e2, 5.115744692211e2},
};

static const double class_c[][2] = {
    {5.195078707457e2, 5.149019699238e2}, {5.155422171134e2, 5.127578201997e2},
    {5.144678022222e2, 5.122251847514e2}, {5.140150594328e2, 5.121090289018e2},
    {5.137550426810e2, 5.121143685824e2}, {5.135811056728e2, 5.121496764568e2},
    {5.134569343165e2, 5.121870921893e2}, {5.133651975661e2, 5.122193250322e2},
    {5.132955192805e2, 5.122454735794e2}, {5.132410471738e2, 5.122663649603e2},
    {5.131971141679e2, 5.122830879827e2}, {5.131605205716e2, 5.122965869718e2},
    {5.131290734194e2, 5.123075927445e2}, {5.131012720314e2, 5.123166486553e2},
    {5.130760908195e2, 5.123241541685e2}, {5.130528295923e2, 5.123304037599e2},
    {5.130310107773e2, 5.123356167976e2}, {5.130103090133e2, 5.123399592211e2},
    {5.129905029333e2, 5.123435588985e2}, {5.129714421109e2, 5.123465164008e2},
};

static const double class_d[][2] = {
    {5.122230065252e2, 5.118534037109e2}, {5.120463975765e2, 5.117061181082e2},
    {5.119865766760e2, 5.117096364601e2}, {5.119518799488e2, 5.117373863950e2},
    {5.119269088223e2, 5.117680347632e2}, {5.119082416858e2, 5.117967875532e2},
    {5.118943814638e2, 5.118225281841e2}, {5.118842385057e2, 5.118451629348e2},
    {5.118769435632e2, 5.118649119387e2}, {5.118718203448e2, 5.118820803844e2},
    {5.118683569061e2, 5.118969781011e2}, {5.118661708593e2, 5.119098918835e2},
    {5.118649768950e2, 5.119210777066e2}, {5.118645605626e2, 5.119307604484e2},
    {5.118647586618e2, 5.119391362671e2}, {5.118654451572e2, 5.119463757241e2},
    {5.118665212451e2, 5.119526269238e2}, {5.118679083821e2, 5.119580184108e2},
    {5.118695433664e2, 5.119626617538e2}, {5.118713748264e2, 5.119666538138e2},
    {5.118733606701e2, 5.119700787219e2}, {5.118754661974e2, 5.119730095953e2},
    {5.118776626738e2, 5.119755100241e2}, {5.118799262314e2, 5.119776353561e2},
    {5.118822370068e2, 5.119794338060e2},
};

/* Official, real and imaginary part by step; limit 1e-12 of the modulus. */
static const double (*const ft_checksums[NPB_CLASSES])[2] = {
    [NPB_S] = class_s, [NPB_W] = class_w, [NPB_A] = class_a,
    [NPB_B] = class_b, [NPB_C] = class_c, [NPB_D] = class_d,
};

static const struct {
	int nx, ny, nz, iterations;
} problems[NPB_CLASSES] = {
    [NPB_S] = {64, 64, 64, 6},	   [NPB_W] = {128, 128, 32, 6},	  [NPB_A] = {256, 256, 128, 6},
    [NPB_B] = {512, 256, 256, 20}, [NPB_C] = {512, 512, 512, 20}, [NPB_D] = {2048, 1024, 1024, 25},
};

enum {
	PAD =
	    FT_LANES, /* so that the same place in all planes is not the same place in the cache */
	MOST_ITERATIONS = 25
};

static double *doubles(int64_t count)
{
	return npb_alloc((size_t)count, sizeof(double));
}

static void open_state(struct ft_state *s, struct npb_run *run)
{
	const int64_t points = run->size[0] * run->size[1] * run->size[2] / run->ranks;

	memset(s, 0, sizeof(*s));
	s->run = run;
	s->nx = (int)run->size[0];
	s->ny = (int)run->size[1];
	s->nz = (int)run->size[2];
	s->nxl = s->nx / run->ranks;
	s->nyl = s->ny / run->ranks;
	s->piece = s->nxl < FT_LANES ? s->nxl : FT_LANES;
	s->slab = (int64_t)s->nz * s->nxl + PAD;
	s->block = 2 * s->nyl * s->slab;
	s->frequency_re = doubles(points);
	s->frequency_im = doubles(points);
	s->send = doubles(s->block * run->ranks);
	s->receive = run->ranks > 1 ? doubles(s->block * run->ranks) : s->send;
	s->plane_re = doubles((int64_t)s->nx * s->nz);
	s->plane_im = doubles((int64_t)s->nx * s->nz);
	s->decay_x = doubles(s->nx);
	s->decay_y = doubles(s->ny);
	s->decay_z = doubles(s->nz);
	for (int i = 0; i < 2; i++) {
		s->work[i].re = doubles(FT_LONGEST * FT_LANES);
		s->work[i].im = doubles(FT_LONGEST * FT_LANES);
	}
}

static void open_plans(struct ft_state *s)
{
	ft_open_plan(&s->x, s->nx);
	ft_open_plan(&s->y, s->ny);
	ft_open_plan(&s->z, s->nz);
}

static void close_plans(struct ft_state *s)
{
	ft_close_plan(&s->x);
	ft_close_plan(&s->y);
	ft_close_plan(&s->z);
}

static void close_state(struct ft_state *s)
{
	for (int i = 0; i < 2; i++) {
		npb_free(s->work[i].re);
		npb_free(s->work[i].im);
	}
	if (s->receive != s->send)
		npb_free(s->receive);
	npb_free(s->send);
	npb_free(s->frequency_re);
	npb_free(s->frequency_im);
	npb_free(s->plane_re);
	npb_free(s->plane_im);
	npb_free(s->decay_x);
	npb_free(s->decay_y);
	npb_free(s->decay_z);
}

/* Step 5 of the report: the sum of the points j mod nx, 3j mod ny, 5j mod nz for j = 1 ... 1024,
 * own part; not yet divided by the number of points. */
static void sum_checksum_points(const struct ft_state *s, double sum[2])
{
	const int64_t plane = (int64_t)s->nx * s->nz + s->slab - (int64_t)s->nxl * s->nz;
	const int first = s->run->rank * s->nyl;

	sum[0] = sum[1] = 0;
	for (int j = 1; j <= 1024; j++) {
		const int y = 3 * j % s->ny - first;
		const double *re =
		    s->send + y * plane + (int64_t)(j % s->nx) * s->nz + 5 * j % s->nz;

		if (y < 0 || y >= s->nyl)
			continue;
		sum[0] += re[0];
		sum[1] += re[s->nyl * plane];
	}
}

/* |sum - official| / |official|, of complex numbers, as a check of the distance. */
static void verify(struct npb_run *run, double sum[][2], double points)
{
	char name[32];

	for (int t = 0; t < run->iterations; t++) {
		const double *official = ft_checksums[run->class][t];

		sum[t][0] /= points;
		sum[t][1] /= points;
		if (run->rank == 0)
			printf(" T = %4d     Checksum = %22.12E%22.12E\n", t + 1, sum[t][0],
			       sum[t][1]);
		snprintf(name, sizeof(name), "checksum %d", t + 1);
		npb_check_complex(run, name, sum[t], official, 1e-12);
	}
}

static void run_ft(struct npb_run *run)
{
	const double points = (double)(run->size[0] * run->size[1] * run->size[2]);
	double sum[MOST_ITERATIONS][2] = {0};
	struct ft_state s;

	open_state(&s, run);
	open_plans(&s);
	ft_start(&s); /* untimed: touches all memory */
	ft_evolve(&s, 1);
	close_plans(&s);
	npb_timer_start(run);
	open_plans(&s);
	ft_start(&s);
	for (int t = 1; t <= npb_steps(run->iterations); t++) {
		ft_evolve(&s, t);
		sum_checksum_points(&s, sum[t - 1]);
	}
	npb_allreduce(run, sum, 2 * run->iterations, MPI_DOUBLE, MPI_SUM);
	npb_timer_stop(run);
	/* Operations as NPB counts them. */
	run->mega_ops =
	    1e-6 * points *
	    (14.8157 + 7.19641 * log(points) + (5.23518 + 7.21113 * log(points)) * run->iterations);
	verify(run, sum, points);
	npb_check_work(run, (run->iterations + 1) * run->size[0] * run->size[1] * run->size[2]);
	close_plans(&s);
	close_state(&s);
}

static void describe_ft(struct npb_run *run)
{
	run->size[0] = problems[run->class].nx;
	run->size[1] = problems[run->class].ny;
	run->size[2] = problems[run->class].nz;
	run->iterations = problems[run->class].iterations;
}

static int most_ranks_ft(enum npb_class class)
{
	const int nx = problems[class].nx, ny = problems[class].ny;

	return nx < ny ? nx : ny;
}

static uint64_t memory_ft(enum npb_class class, int ranks)
{
	const uint64_t plane = (uint64_t)problems[class].nx * (uint64_t)problems[class].nz;
	const uint64_t points = plane * (uint64_t)problems[class].ny / (uint64_t)ranks;

	return points * (ranks > 1 ? 49 : 33) + plane * 16 + (UINT64_C(16) << 20);
}

const struct npb_kernel npb_kernel = {
    .name = "FT",
    .operations = "floating point",
    .rule = NPB_POWER_OF_TWO,
    .most_ranks = most_ranks_ft,
    .memory_bytes = memory_ft,
    .describe = describe_ft,
    .run = run_ft,
};
