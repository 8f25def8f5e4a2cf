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
