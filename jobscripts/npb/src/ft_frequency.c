/* FT in the space of frequencies: lines along y, and the evolution in time. */
#include <math.h>

#include "ft.h"

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
