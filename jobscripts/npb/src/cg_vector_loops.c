/* The loops over the vectors of CG. */
#include "cg.h"

enum { LANES = 8 };

NPB_VECTOR double cg_dot(const double *restrict a, const double *restrict b, int n)
{
	double lane[LANES] = {0}, sum = 0;
	int i = 0;

	for (; i + LANES <= n; i += LANES) {
		for (int l = 0; l < LANES; l++)
			lane[l] += a[i + l] * b[i + l];
	}
	for (; i < n; i++)
		lane[0] += a[i] * b[i];
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
}

NPB_VECTOR void cg_subtract(double alpha, const double *restrict from, double *restrict to, int n)
{
	for (int i = 0; i < n; i++)
		to[i] -= alpha * from[i];
}

NPB_VECTOR void cg_advance(double alpha, double beta, const double *restrict r, double *restrict z,
			   double *restrict p, int n)
{
	for (int i = 0; i < n; i++) {
		z[i] += alpha * p[i];
		p[i] = r[i] + beta * p[i];
	}
}
