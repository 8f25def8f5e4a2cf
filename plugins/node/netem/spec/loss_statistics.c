#include "netem/spec/loss_statistics.h"

#include <math.h>

/* Of the normal distribution, two-sided. */
#define Z_95  1.959963984540054
#define Z_999 3.290526731491926

#define TAIL	     0.0005 /* each side of 99.9 % */
#define LEAST_SPELLS 20	    /* of the bad state, for a normal distribution to do */

void sy_wilson(int64_t hits, int64_t of, double *low, double *high)
{
	double n = (double)of, p = (double)hits / n, z2 = Z_95 * Z_95;
	double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = Z_95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));

	*low = hits ? fmax(0, middle - half) : 0; /* exactly 0 but for rounding */
	*high = hits < of ? fmin(1, middle + half) : 1;
}

/* log of the probability of exactly `k` of `n`. */
static double log_binomial(double k, double n, double p)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p);
}

double sy_binomial_tail(int64_t hits, int64_t of, double p)
{
	double n = (double)of, k = (double)hits, sum = 0, term;
	int step = k < n * p ? -1 : 1;

	if (p <= 0 || p >= 1)
		return k == n * p ? 1 : 0;
	/* Away from the mean each term is smaller than the one before. */
	term = exp(log_binomial(k, n, p));
	for (; k >= 0 && k <= n && term > sum * 1e-12; k += step) {
		sum += term;
		term *= step > 0 ? (n - k) / (k + 1) * p / (1 - p) : k / (n - k + 1) * (1 - p) / p;
	}
	return fmin(1, sum);
}

double sy_gemodel_loss(const struct sy_gemodel *model, double *variance)
{
	double p = model->p_ppb / (double)SY_WHOLE_PPB, r = model->r_ppb / (double)SY_WHOLE_PPB;
	double bad = model->one_minus_h_ppb / (double)SY_WHOLE_PPB;
	double good = model->one_minus_k_ppb / (double)SY_WHOLE_PPB;
	double share = p + r > 0 ? p / (p + r) : 0; /* it begins in the good state and stays */
	double mean = share * bad + (1 - share) * good;
	double between = share * (1 - share) * (bad - good) * (bad - good);

	/* Twice the sum of the correlations (1-p-r)^k, k from 1 on, is 2 (1-p-r)/(p+r). */
	*variance = mean * (1 - mean) + (p + r > 0 ? between * 2 * (1 - p - r) / (p + r) : 0);
	return mean;
}

/* The count at which the tail reaches TAIL, between `mean` (inside) and `outside`. */
static int64_t find_bound(int64_t inside, int64_t outside, int64_t packets, double p)
{
	while (inside != outside) {
		int64_t half = inside + (outside - inside) / 2;

		if (half == inside)
			half = outside;
		if (sy_binomial_tail(half, packets, p) >= TAIL)
			inside = half;
		else
			outside = half > inside ? half - 1 : half + 1;
	}
	return inside;
}

double sy_state_loss(const struct sy_loss_state *state, double *variance, double *bursts)
{
	double whole = SY_WHOLE_PPB, p13 = state->p13_ppb / whole, p31 = state->p31_ppb / whole;
	double p32 = state->p32_ppb / whole, p23 = state->p23_ppb / whole;
	double p14 = state->p14_ppb / whole;
	double in3 = p13 > 0 ? p13 / p31 : 0, in2 = p32 > 0 ? in3 * p32 / p23 : 0;
	double all = 1 + p14 + in3 + in2, mean = (in3 + p14) / all;
	/* h of state 1 is 0. */
	double h4 = 1 - mean, h3 = p13 > 0 ? (mean - p14 * h4) / p13 : 0;
	double h2 = p23 > 0 ? h3 - mean / p23 : 0;
	double good = -mean, lost = 1 - mean;

	*variance = (-good * good + in2 * (2 * good * h2 - good * good) +
		     in3 * (2 * lost * h3 - lost * lost) + p14 * (2 * lost * h4 - lost * lost)) /
		    all;
	if (bursts)
		*bursts = (p13 > 0 ? p13 : p14) / all;
	return mean;
}

double sy_mean_loss(const struct sy_netem *spec)
{
	double variance;

	if (spec->has_gemodel)
		return sy_gemodel_loss(&spec->gemodel, &variance);
	if (spec->has_state)
		return sy_state_loss(&spec->state, &variance, NULL);
	return spec->loss_ppb / (double)SY_WHOLE_PPB;
}

/* By the normal distribution, where there are spells enough for it. */
static struct sy_drops chain_drops(const struct sy_netem *spec, int64_t least, int64_t packets)
{
	double variance, n = (double)packets, few = (double)least, spells;
	double p = spec->gemodel.p_ppb / (double)SY_WHOLE_PPB;
	double r = spec->gemodel.r_ppb / (double)SY_WHOLE_PPB;
	struct sy_drops drops = {0};

	if (spec->has_gemodel) {
		drops.loss = sy_gemodel_loss(&spec->gemodel, &variance);
		spells = p > 0 ? p * r / (p + r) : 0;
	} else {
		drops.loss = sy_state_loss(&spec->state, &variance, &spells);
	}
	drops.judged = n * spells >= LEAST_SPELLS;
	drops.low = (int64_t)fmax(0, floor(few * drops.loss - Z_999 * sqrt(variance * few) - 1));
	drops.high = (int64_t)fmin(n, ceil(n * drops.loss + Z_999 * sqrt(variance * n) + 1));
	return drops;
}

struct sy_drops sy_hits_between(double least_chance, double most_chance, int64_t least,
				int64_t most)
{
	int64_t low = (int64_t)floor((double)least * least_chance);
	int64_t high = (int64_t)ceil((double)most * most_chance);

	return (struct sy_drops){
	    .judged = true,
	    .loss = most_chance,
	    .low = find_bound(low, 0, least, least_chance),
	    .high = find_bound(high, most, most, most_chance),
	};
}

struct sy_drops sy_hits_expected(double p, int64_t least, int64_t most)
{
	return sy_hits_between(p, p, least, most);
}

struct sy_drops sy_drops_expected(const struct sy_netem *spec, int64_t least, int64_t packets)
{
	double doubled = spec->duplicate_ppb / (double)SY_WHOLE_PPB;
	double loss = spec->loss_ppb / (double)SY_WHOLE_PPB;

	if (spec->has_gemodel || spec->has_state)
		return chain_drops(spec, least, packets);
	return sy_hits_between(loss * (1 - doubled) / (1 + doubled), loss, least, packets);
}
