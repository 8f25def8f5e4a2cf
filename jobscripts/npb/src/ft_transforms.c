/* The transforms of FT: of lines, of planes of x and z, and in the space of frequencies. */
#include <math.h>

#include "ft.h"
#include "npb.h"

/*
 * Discrete Fourier transforms by Stockham's method: the data go back and forth between two arrays
 * and need no reordering. Passes of radix 4, and one of radix 2 when log2 n is odd. Eight lines are
 * transformed at once, real and imaginary parts apart, so that the innermost loop is all vectors.
 */

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

/* Transforms with exp(-2 pi i jk / n); returns which of the two has the result. The other
 * direction: swap re and im of both. */
static struct ft_lines ft_transform(const struct ft_plan *plan, struct ft_lines in,
				    struct ft_lines other)
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

/*
 * Planes of x and z of FT: filled with random numbers, and transformed along x and z on the way to
 * the ranks' blocks and back. One plane at a time stays in the cache between its transforms.
 */

#define SEED UINT64_C(314159265)

/* The lines swapped: a transform of them goes the other way. */
static struct ft_lines swapped(struct ft_lines lines)
{
	return (struct ft_lines){lines.im, lines.re};
}

/* From planes of x and z, one for each y of this rank, to the blocks and back. */
static void ft_fill_plane(struct ft_state *s, int y)
{
	const int64_t global = (int64_t)s->run->rank * s->nyl + y;
	double number[2 * FT_LONGEST];

	for (int z = 0; z < s->nz; z++) {
		const int64_t first = 2 * ((int64_t)z * s->ny + global) * s->nx;
		uint64_t seed = npb_jump(SEED, (uint64_t)first);

		npb_fill_uniform(&seed, number, (size_t)(2 * s->nx));
		for (int x = 0; x < s->nx; x++) {
			s->plane_re[(int64_t)x * s->nz + z] = number[2 * x];
			s->plane_im[(int64_t)x * s->nz + z] = number[2 * x + 1];
		}
	}
}

/* Lines along x, eight z side by side, between the plane and the work. */
NPB_VECTOR static void load_x(const double *restrict plane, double *restrict work, int nx, int nz)
{
	for (int x = 0; x < nx; x++) {
		for (int l = 0; l < FT_LANES; l++)
			work[x * FT_LANES + l] = plane[(int64_t)x * nz + l];
	}
}

NPB_VECTOR static void store_x(const double *restrict work, double *restrict plane, int nx, int nz)
{
	for (int x = 0; x < nx; x++) {
		for (int l = 0; l < FT_LANES; l++)
			plane[(int64_t)x * nz + l] = work[x * FT_LANES + l];
	}
}

/* Lines along z lie across in the plane: eight x are turned. */
NPB_VECTOR static void load_z(const double *restrict plane, double *restrict work, int nz)
{
	for (int z = 0; z < nz; z++) {
		for (int l = 0; l < FT_LANES; l++)
			work[z * FT_LANES + l] = plane[(int64_t)l * nz + z];
	}
}

NPB_VECTOR static void store_z(const double *restrict work, double *restrict plane, int nz)
{
	for (int z = 0; z < nz; z++) {
		for (int l = 0; l < FT_LANES; l++)
			plane[(int64_t)l * nz + z] = work[z * FT_LANES + l];
	}
}

/* The same lines in the blocks: pieces of x, each in the block of the rank that has these x. */
static double *piece_of(const struct ft_state *s, double *blocks, int part, int y, int x)
{
	return blocks + x / s->nxl * s->block + part * (s->block / 2) + y * s->slab + x % s->nxl;
}

NPB_VECTOR static void copy_out(const double *restrict work, double *restrict block, int nz,
				int nxl, int piece)
{
	if (piece == FT_LANES) {
		for (int z = 0; z < nz; z++) {
			for (int l = 0; l < FT_LANES; l++)
				block[(int64_t)z * nxl + l] = work[z * FT_LANES + l];
		}
		return;
	}
	for (int z = 0; z < nz; z++) {
		for (int l = 0; l < piece; l++)
			block[(int64_t)z * nxl + l] = work[z * FT_LANES + l];
	}
}

NPB_VECTOR static void copy_in(const double *restrict block, double *restrict work, int nz, int nxl,
			       int piece)
{
	if (piece == FT_LANES) {
		for (int z = 0; z < nz; z++) {
			for (int l = 0; l < FT_LANES; l++)
				work[z * FT_LANES + l] = block[(int64_t)z * nxl + l];
		}
		return;
	}
	for (int z = 0; z < nz; z++) {
		for (int l = 0; l < piece; l++)
			work[z * FT_LANES + l] = block[(int64_t)z * nxl + l];
	}
}

static void ft_plane_to_blocks(struct ft_state *s, int y)
{
	struct ft_lines done;

	npb_worked((int64_t)s->nx * s->nz);
	for (int z = 0; z < s->nz; z += FT_LANES) {
		load_x(s->plane_re + z, s->work[0].re, s->nx, s->nz);
		load_x(s->plane_im + z, s->work[0].im, s->nx, s->nz);
		done = ft_transform(&s->x, s->work[0], s->work[1]);
		store_x(done.re, s->plane_re + z, s->nx, s->nz);
		store_x(done.im, s->plane_im + z, s->nx, s->nz);
	}
	for (int x = 0; x < s->nx; x += FT_LANES) {
		load_z(s->plane_re + (int64_t)x * s->nz, s->work[0].re, s->nz);
		load_z(s->plane_im + (int64_t)x * s->nz, s->work[0].im, s->nz);
		done = ft_transform(&s->z, s->work[0], s->work[1]);
		for (int l = 0; l < FT_LANES; l += s->piece) {
			copy_out(done.re + l, piece_of(s, s->send, 0, y, x + l), s->nz, s->nxl,
				 s->piece);
			copy_out(done.im + l, piece_of(s, s->send, 1, y, x + l), s->nz, s->nxl,
				 s->piece);
		}
	}
}

static void ft_blocks_to_plane(struct ft_state *s, int y)
{
	const int64_t plane = (int64_t)s->nx * s->nz + s->slab - (int64_t)s->nxl * s->nz;
	double *re = s->send + y * plane, *im = re + s->nyl * plane;
	struct ft_lines done;

	npb_worked((int64_t)s->nx * s->nz);
	for (int x = 0; x < s->nx; x += FT_LANES) {
		for (int l = 0; l < FT_LANES; l += s->piece) {
			copy_in(piece_of(s, s->receive, 0, y, x + l), s->work[0].re + l, s->nz,
				s->nxl, s->piece);
			copy_in(piece_of(s, s->receive, 1, y, x + l), s->work[0].im + l, s->nz,
				s->nxl, s->piece);
		}
		done = swapped(ft_transform(&s->z, swapped(s->work[0]), swapped(s->work[1])));
		store_z(done.re, s->plane_re + (int64_t)x * s->nz, s->nz);
		store_z(done.im, s->plane_im + (int64_t)x * s->nz, s->nz);
	}
	for (int z = 0; z < s->nz; z += FT_LANES) {
		load_x(s->plane_re + z, s->work[0].re, s->nx, s->nz);
		load_x(s->plane_im + z, s->work[0].im, s->nx, s->nz);
		done = swapped(ft_transform(&s->x, swapped(s->work[0]), swapped(s->work[1])));
		store_x(done.re, re + z, s->nx, s->nz);
		store_x(done.im, im + z, s->nx, s->nz);
	}
}

/* FT in the space of frequencies: lines along y, and the evolution in time. */

#define ALPHA 1e-6

/* A set of eight lines along y: eight x, or fewer of several z, from x and z on. */
struct line_set {
	int x, z;
};

static struct line_set line_set(const struct ft_state *s, int64_t number)
{
	const int64_t first = number * FT_LANES;

	return (struct line_set){(int)(first % s->nxl), (int)(first / s->nxl)};
}

/* Element y = 0 of a piece, in the array of frequencies. */
static int64_t in_frequency(const struct ft_state *s, struct line_set set, int l)
{
	return (int64_t)(set.z + l / s->piece) * s->ny * s->nxl + set.x;
}

/* Likewise in a block. */
static int64_t in_block(const struct ft_state *s, struct line_set set, int l)
{
	return (int64_t)(set.z + l / s->piece) * s->nxl + set.x;
}

/* out(y) = in(y) for `count` elements y and `piece` lanes. */
NPB_VECTOR static void copy(const double *restrict in, int64_t in_step, double *restrict out,
			    int64_t out_step, int count, int piece)
{
	if (piece == FT_LANES) {
		for (int y = 0; y < count; y++) {
			for (int l = 0; l < FT_LANES; l++)
				out[y * out_step + l] = in[y * in_step + l];
		}
		return;
	}
	for (int y = 0; y < count; y++) {
		for (int l = 0; l < piece; l++)
			out[y * out_step + l] = in[y * in_step + l];
	}
}

/* work(y) = in(y) decay_y(y) across(lane) */
NPB_VECTOR static void load_decayed(const double *restrict in, int64_t step,
				    const double *restrict decay_y, const double *restrict across,
				    double *restrict work, int count, int piece)
{
	if (piece == FT_LANES) {
		for (int y = 0; y < count; y++) {
			for (int l = 0; l < FT_LANES; l++)
				work[y * FT_LANES + l] =
				    in[y * step + l] * (decay_y[y] * across[l]);
		}
		return;
	}
	for (int y = 0; y < count; y++) {
		for (int l = 0; l < piece; l++)
			work[y * FT_LANES + l] = in[y * step + l] * (decay_y[y] * across[l]);
	}
}

/* Blocks of all ranks to frequencies: the last transform of the way there. */
static void blocks_to_frequency(struct ft_state *s)
{
	for (int64_t i = 0; i < (int64_t)s->nz * s->nxl / FT_LANES; i++) {
		const struct line_set set = line_set(s, i);
		struct ft_lines done;

		for (int l = 0; l < FT_LANES; l += s->piece) {
			for (int q = 0; q < s->run->ranks; q++) {
				const double *block =
				    s->receive + q * s->block + in_block(s, set, l);
				const int at = q * s->nyl * FT_LANES + l;

				copy(block, s->slab, s->work[0].re + at, FT_LANES, s->nyl,
				     s->piece);
				copy(block + s->block / 2, s->slab, s->work[0].im + at, FT_LANES,
				     s->nyl, s->piece);
			}
		}
		done = ft_transform(&s->y, s->work[0], s->work[1]);
		for (int l = 0; l < FT_LANES; l += s->piece) {
			const int64_t to = in_frequency(s, set, l);

			copy(done.re + l, FT_LANES, s->frequency_re + to, s->nxl, s->ny, s->piece);
			copy(done.im + l, FT_LANES, s->frequency_im + to, s->nxl, s->ny, s->piece);
		}
	}
}

/* The frequencies of eight lines at time t, into the work. */
static void load_evolved(struct ft_state *s, struct line_set set)
{
	const int x0 = s->run->rank * s->nxl;
	double across[FT_LANES];

	for (int l = 0; l < FT_LANES; l += s->piece) {
		const int64_t from = in_frequency(s, set, l);

		for (int i = 0; i < s->piece; i++)
			across[i] = s->decay_z[set.z + l / s->piece] * s->decay_x[x0 + set.x + i];
		load_decayed(s->frequency_re + from, s->nxl, s->decay_y, across, s->work[0].re + l,
			     s->ny, s->piece);
		load_decayed(s->frequency_im + from, s->nxl, s->decay_y, across, s->work[0].im + l,
			     s->ny, s->piece);
	}
}

/* The first transform of the way back; real and imaginary parts change places for it. */
static void frequency_to_blocks(struct ft_state *s)
{
	for (int64_t i = 0; i < (int64_t)s->nz * s->nxl / FT_LANES; i++) {
		const struct line_set set = line_set(s, i);
		struct ft_lines done;

		load_evolved(s, set);
		done = ft_transform(&s->y, (struct ft_lines){s->work[0].im, s->work[0].re},
				    (struct ft_lines){s->work[1].im, s->work[1].re});
		for (int l = 0; l < FT_LANES; l += s->piece) {
			for (int q = 0; q < s->run->ranks; q++) {
				double *block = s->send + q * s->block + in_block(s, set, l);
				const int at = q * s->nyl * FT_LANES + l;

				copy(done.im + at, FT_LANES, block, s->slab, s->nyl, s->piece);
				copy(done.re + at, FT_LANES, block + s->block / 2, s->slab, s->nyl,
				     s->piece);
			}
		}
	}
}

static void exchange(struct ft_state *s)
{
	if (s->run->ranks > 1)
		npb_alltoall(s->run, s->send, s->receive, (int)s->block, MPI_DOUBLE);
}

void ft_start(struct ft_state *s)
{
	for (int y = 0; y < s->nyl; y++) {
		ft_fill_plane(s, y);
		ft_plane_to_blocks(s, y);
	}
	exchange(s);
	blocks_to_frequency(s);
}

/* Frequencies above n/2 are the negative ones. */
static void set_decay(double *decay, int n, int t)
{
	const double pi = 3.14159265358979323846;
	double factor = -4 * ALPHA * pi * pi * t;

	if (npb_planted("coefficient"))
		factor *= 1 + 1e-6;
	for (int k = 0; k < n; k++) {
		const double signed_k = k < n / 2 ? k : k - n;

		decay[k] = exp(factor * signed_k * signed_k);
	}
}

void ft_evolve(struct ft_state *s, int t)
{
	set_decay(s->decay_x, s->nx, t);
	set_decay(s->decay_y, s->ny, t);
	set_decay(s->decay_z, s->nz, t);
	frequency_to_blocks(s);
	exchange(s);
	for (int y = 0; y < s->nyl; y++)
		ft_blocks_to_plane(s, y);
}
