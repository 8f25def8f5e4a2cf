/*
 * EP, "embarrassingly parallel" (the report, section 2.2.1, kernel EP; numbers: section 2.3).
 *
 * Solved: 2^m pairs (x, y) of uniform numbers in (-1, 1), x = 2 r(2j-1) - 1, y = 2 r(2j) - 1, from
 * the sequence with the seed 271828183. Where t = x^2 + y^2 <= 1 the pair gives two independent
 * Gaussian deviates X = x sqrt(-2 log t / t), Y = y sqrt(-2 log t / t). Wanted: the sums of X and
 * of Y, and how many pairs lie in each square annulus l <= max(|X|, |Y|) < l + 1, for l = 0 ... 9.
 *
 * Distributed: each rank has an equal, contiguous part of the pairs and jumps to its seed.
 * Communicated: one MPI_Allreduce of the 12 figures at the very end.
 *
 * Computed in chunks that stay in the first-level cache, each step one loop that vectors can do:
 * a rejected pair is given t = 1, hence deviates 0, rather than a branch.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "npb_comm.h"
#include "npb.h"

enum {
	CHUNK = 512, /* pairs */
	ANNULI = 10,
	LANES = 8 /* partial sums */
};

#define SEED UINT64_C(271828183)

static const struct {
	int m;		     /* 2^m pairs */
	double sum_x, sum_y; /* official, limit 1e-8 */
	double pairs;	     /* accepted; S, A and B also in the report's table */
} problems[NPB_CLASSES] = {
    [NPB_S] = {24, -3.247834652034740e3, -6.958407078382297e3, 13176389},
    [NPB_W] = {25, -2.863319731645753e3, -6.320053679109499e3, 26354769},
    [NPB_A] = {28, -4.295875165629892e3, -1.580732573678431e4, 210832767},
    [NPB_B] = {30, 4.033815542441498e4, -2.660669192809235e4, 843345606},
    [NPB_C] = {32, 4.764367927995374e4, -8.084072988043731e4, 3373275903},
    [NPB_D] = {36, 1.982481200946593e5, -1.020596636361769e5, 53972171957},
};

struct tally {
	double sum_x, sum_y;
	double annulus[ANNULI];
};

struct chunk {
	double uniform[2 * CHUNK];
	double x[CHUNK], y[CHUNK]; /* the pair, then the deviates */
	double t[CHUNK];	   /* x^2 + y^2, or 1 for a rejected pair */
};

/*
 * log(t) for a normal positive t, free of branches and of calls, so that a loop of it becomes
 * vectors: t = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s) with s = (m-1)/(m+1),
 * |s| < 0.172; ten terms of the series leave less than 1e-16 of it.
 */
NPB_INLINE double logarithm(double t)
{
	const uint64_t sqrt_half = UINT64_C(0x3fe6a09e667f3bcd), bias = UINT64_C(1023) << 52;
	uint64_t bits, exponent, scaled;
	double m, e, s, z, series;

	memcpy(&bits, &t, sizeof(bits));
	exponent = (bits - sqrt_half + bias) >> 52; /* e + 1023, or one less, never negative */
	scaled = bits - (exponent << 52) + bias;
	memcpy(&m, &scaled, sizeof(m));
	exponent |= UINT64_C(0x4330000000000000); /* the bits of 2^52 + e + 1023 */
	memcpy(&e, &exponent, sizeof(e));
	e -= 0x1p52 + 1023;
	s = (m - 1) / (m + 1);
	z = s * s;
	series = 1.0 / 17 + z * (1.0 / 19);
	series = 1.0 / 13 + z * (1.0 / 15 + z * series);
	series = 1.0 / 9 + z * (1.0 / 11 + z * series);
	series = 1.0 / 5 + z * (1.0 / 7 + z * series);
	series = z * (1.0 / 3 + z * series);
	return e * 0.693147180559945309417 + 2 * (s + s * series);
}

/* Uniform numbers to pairs; returns how many were accepted. */
NPB_VECTOR static int64_t accept(struct chunk *restrict c)
{
	int64_t accepted = 0;
	double x, y, t;

	for (int i = 0; i < CHUNK; i++) {
		x = 2 * c->uniform[2 * i] - 1;
		y = 2 * c->uniform[2 * i + 1] - 1;
		t = x * x + y * y;
		accepted += t <= 1;
		c->x[i] = x;
		c->y[i] = y;
		c->t[i] = t <= 1 ? t : 1;
	}
	return accepted;
}

/* Pairs to deviates; `scale` is 1 unless an error is planted. t: now max(|X|, |Y|). */
NPB_VECTOR static void transform(struct chunk *restrict c, double scale)
{
	double factor, x, y;

	for (int i = 0; i < CHUNK; i++) {
		factor = sqrt(-2 * scale * logarithm(c->t[i]) / c->t[i]);
		x = c->x[i] * factor;
		y = c->y[i] * factor;
		c->x[i] = x;
		c->y[i] = y;
		x = fabs(x);
		y = fabs(y);
		c->t[i] = x > y ? x : y;
	}
}

NPB_VECTOR static void add_sums(const struct chunk *restrict c, double *restrict sum_x,
				double *restrict sum_y)
{
	for (int i = 0; i < CHUNK; i += LANES) {
		for (int l = 0; l < LANES; l++) {
			sum_x[l] += c->x[i + l];
			sum_y[l] += c->y[i + l];
		}
	}
}

/* count[k] grows by the pairs with max(|X|, |Y|) >= k, k = 1, 2, 3; returns the largest. */
NPB_VECTOR static double count_outside(const struct chunk *restrict c, int64_t *restrict count)
{
	int64_t outside_1 = 0, outside_2 = 0, outside_3 = 0;
	double lane[LANES] = {0};
	double largest = 0;

	for (int i = 0; i < CHUNK; i++) {
		outside_1 += c->t[i] >= 1;
		outside_2 += c->t[i] >= 2;
		outside_3 += c->t[i] >= 3;
	}
	for (int i = 0; i < CHUNK; i += LANES) {
		for (int l = 0; l < LANES; l++)
			lane[l] = lane[l] > c->t[i + l] ? lane[l] : c->t[i + l];
	}
	for (int l = 0; l < LANES; l++)
		largest = largest > lane[l] ? largest : lane[l];
	count[1] += outside_1;
	count[2] += outside_2;
	count[3] += outside_3;
	return largest;
}

/* Beyond 4 standard deviations: about one pair in 8,000. */
static void count_far(const struct chunk *restrict c, int64_t *restrict count)
{
	for (int i = 0; i < CHUNK; i++) {
		for (int k = 4; k < ANNULI && c->t[i] >= k; k++)
			count[k]++;
	}
}

/* The pairs first ... first + pairs - 1; `pairs` is a multiple of CHUNK. */
static void tally_pairs(uint64_t first, uint64_t pairs, struct tally *tally)
{
	static struct chunk c;
	uint64_t seed = npb_jump(SEED, 2 * first);
	double sum_x[LANES] = {0}, sum_y[LANES] = {0};
	int64_t outside[ANNULI + 1] = {0}; /* [k]: pairs with max(|X|, |Y|) >= k */
	const double scale = npb_planted("coefficient") ? 1 + 1e-6 : 1;

	for (uint64_t done = 0; done < pairs; done += CHUNK) {
		npb_worked(CHUNK);
		npb_fill_uniform(&seed, c.uniform, (size_t)2 * CHUNK);
		outside[0] += accept(&c);
		transform(&c, scale);
		add_sums(&c, sum_x, sum_y);
		if (count_outside(&c, outside) >= 4)
			count_far(&c, outside);
	}
	for (int l = 0; l < LANES; l++) {
		tally->sum_x += sum_x[l];
		tally->sum_y += sum_y[l];
	}
	for (int k = 0; k < ANNULI; k++)
		tally->annulus[k] = (double)(outside[k] - outside[k + 1]);
}

static void print_results(const struct npb_run *run, const struct tally *tally, double pairs)
{
	if (run->rank != 0)
		return;
	printf(" N = 2^%d\n No. Gaussian Pairs = %.0f\n", problems[run->class].m, pairs);
	printf(" Sums = %25.15E %25.15E\n Counts:\n", tally->sum_x, tally->sum_y);
	for (int k = 0; k < ANNULI; k++)
		printf(" %2d %14.0f\n", k, tally->annulus[k]);
}

static void run_ep(struct npb_run *run)
{
	const int64_t all = INT64_C(1) << problems[run->class].m;
	const uint64_t share = (uint64_t)(all / run->ranks);
	struct tally tally = {0};
	double pairs = 0;

	npb_timer_start(run);
	tally_pairs(share * (uint64_t)run->rank, npb_planted("steps") ? share / 2 : share, &tally);
	npb_allreduce(run, &tally, (int)(sizeof(tally) / sizeof(double)), MPI_DOUBLE, MPI_SUM);
	npb_timer_stop(run);
	for (int k = 0; k < ANNULI; k++)
		pairs += tally.annulus[k];
	print_results(run, &tally, pairs);
	run->mega_ops = ldexp(1, problems[run->class].m + 1) * 1e-6;
	npb_check(run, "sum of X", tally.sum_x, problems[run->class].sum_x, 1e-8);
	npb_check(run, "sum of Y", tally.sum_y, problems[run->class].sum_y, 1e-8);
	npb_check(run, "Gaussian pairs", pairs, problems[run->class].pairs, 1e-8);
	npb_check_work(run, all);
}

static void describe_ep(struct npb_run *run)
{
	run->size[0] = INT64_C(2) << problems[run->class].m;
	run->iterations = 0; /* as NPB says it */
}

static int most_ranks_ep(enum npb_class class)
{
	return 1 << (problems[class].m - 16);
}

static uint64_t memory_ep(enum npb_class class, int ranks)
{
	(void)class;
	(void)ranks;
	return 1 << 20;
}

const struct npb_kernel npb_kernel = {
    .name = "EP",
    .operations = "Random numbers generated",
    .rule = NPB_POWER_OF_TWO,
    .most_ranks = most_ranks_ep,
    .memory_bytes = memory_ep,
    .describe = describe_ep,
    .run = run_ep,
};
