/*
 * Planes of x and z of FT: filled with random numbers, and transformed along x and z on the way to
 * the ranks' blocks and back. One plane at a time stays in the cache between its transforms.
 */
#include "ft.h"
#include "npb.h"

#define SEED UINT64_C(314159265)

/* The lines swapped: a transform of them goes the other way. */
static struct ft_lines swapped(struct ft_lines lines)
{
	return (struct ft_lines){lines.im, lines.re};
}

void ft_fill_plane(struct ft_state *s, int y)
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

void ft_plane_to_blocks(struct ft_state *s, int y)
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

void ft_blocks_to_plane(struct ft_state *s, int y)
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
