#include "netem/spec/loss.h"

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

static struct sy_drops chain_drops(const struct sy_gemodel *model, int64_t packets)
{
	double variance, n = (double)packets, half;
	double p = model->p_ppb / (double)SY_WHOLE_PPB, r = model->r_ppb / (double)SY_WHOLE_PPB;
	struct sy_drops drops = {.loss = sy_gemodel_loss(model, &variance)};

	half = Z_999 * sqrt(variance * n) + 1;
	drops.judged = p > 0 && n * p * r / (p + r) >= LEAST_SPELLS;
	drops.low = (int64_t)fmax(0, floor(n * drops.loss - half));
	drops.high = (int64_t)fmin(n, ceil(n * drops.loss + half));
	return drops;
}

struct sy_drops sy_drops_expected(const struct sy_netem *spec, int64_t packets)
{
	double n = (double)packets, doubled = spec->duplicate_ppb / (double)SY_WHOLE_PPB;
	struct sy_drops drops = {.judged = true};
	double least;

	if (spec->has_gemodel)
		return chain_drops(&spec->gemodel, packets);
	drops.loss = spec->loss_ppb / (double)SY_WHOLE_PPB;
	least = drops.loss * (1 - doubled) / (1 + doubled);
	drops.low = find_bound((int64_t)floor(n * least), 0, packets, least);
	drops.high = find_bound((int64_t)ceil(n * drops.loss), packets, packets, drops.loss);
	return drops;
}
