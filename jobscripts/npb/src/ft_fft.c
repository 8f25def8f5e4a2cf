/*
 * Discrete Fourier transforms by Stockham's method: the data go back and forth between two arrays
 * and need no reordering. Passes of radix 4, and one of radix 2 when log2 n is odd. Eight lines are
 * transformed at once, real and imaginary parts apart, so that the innermost loop is all vectors.
 */
#include <math.h>

#include "ft.h"
#include "npb.h"

void ft_open_plan(struct ft_plan *plan, int n)
{
	const double turn = -6.283185307179586476925 / n;

	plan->n = n;
	plan->re = npb_alloc((size_t)n, sizeof(double));
	plan->im = npb_alloc((size_t)n, sizeof(double));
	for (int k = 0; k < n; k++) {
		plan->re[k] = cos(turn * k);
		plan->im[k] = sin(turn * k);
	}
}

void ft_close_plan(struct ft_plan *plan)
{
	npb_free(plan->re);
	npb_free(plan->im);
}

struct factor {
	double re, im;
};

/*
 * One butterfly of radix 4 for `count` neighbouring elements: in[0..3] stand `from` apart and are
 * left `to` apart, times 1, w1, w2, w3.
 */
NPB_INLINE void butterfly(const double *restrict in_re, const double *restrict in_im,
			  double *restrict out_re, double *restrict out_im, int64_t from,
			  int64_t to, int count, const struct factor w[4])
{
	for (int i = 0; i < count; i++) {
		const double ar = in_re[i] + in_re[i + 2 * from],
			     ai = in_im[i] + in_im[i + 2 * from];
		const double br = in_re[i] - in_re[i + 2 * from],
			     bi = in_im[i] - in_im[i + 2 * from];
		const double cr = in_re[i + from] + in_re[i + 3 * from];
		const double ci = in_im[i + from] + in_im[i + 3 * from];
		const double dr = in_re[i + from] - in_re[i + 3 * from];
		const double di = in_im[i + from] - in_im[i + 3 * from];
		const double er = br + di, ei = bi - dr, fr = ar - cr, fi = ai - ci;
		const double gr = br - di, gi = bi + dr;

		out_re[i] = ar + cr;
		out_im[i] = ai + ci;
		out_re[i + to] = er * w[1].re - ei * w[1].im;
		out_im[i + to] = er * w[1].im + ei * w[1].re;
		out_re[i + 2 * to] = fr * w[2].re - fi * w[2].im;
		out_im[i + 2 * to] = fr * w[2].im + fi * w[2].re;
		out_re[i + 3 * to] = gr * w[3].re - gi * w[3].im;
		out_im[i + 3 * to] = gr * w[3].im + gi * w[3].re;
	}
}

/* All butterflies of a pass; sub-transforms stand `stride` elements apart. */
NPB_INLINE void pass_4(const struct ft_plan *plan, struct ft_lines in, struct ft_lines out,
		       int stride, int lanes)
{
	const int quarter = plan->n / stride / 4, count = stride * lanes;
	const int64_t from = (int64_t)quarter * count, to = count;
	struct factor w[4];

	for (int p = 0; p < quarter; p++) {
		for (int j = 1; j < 4; j++)
			w[j] = (struct factor){plan->re[j * p * stride], plan->im[j * p * stride]};
		butterfly(in.re + p * to, in.im + p * to, out.re + 4 * p * to, out.im + 4 * p * to,
			  from, to, count, w);
	}
}

NPB_VECTOR static void first_pass(const struct ft_plan *plan, struct ft_lines in,
				  struct ft_lines out)
{
	pass_4(plan, in, out, 1, FT_LANES);
}

NPB_VECTOR static void later_pass(const struct ft_plan *plan, struct ft_lines in,
				  struct ft_lines out, int stride)
{
	pass_4(plan, in, out, stride, FT_LANES);
}

NPB_VECTOR static void last_pass_2(const double *restrict in, double *restrict out, int count)
{
	for (int i = 0; i < count; i++) {
		out[i] = in[i] + in[i + count];
		out[i + count] = in[i] - in[i + count];
	}
}

struct ft_lines ft_transform(const struct ft_plan *plan, struct ft_lines in, struct ft_lines other)
{
	struct ft_lines swap;
	int stride = 1;

	for (; stride <= plan->n / 4; stride *= 4) {
		if (stride == 1)
			first_pass(plan, in, other);
		else
			later_pass(plan, in, other, stride);
		swap = in;
		in = other;
		other = swap;
	}
	if (stride == plan->n)
		return in;
	last_pass_2(in.re, other.re, stride * FT_LANES);
	last_pass_2(in.im, other.im, stride * FT_LANES);
	return other;
}
