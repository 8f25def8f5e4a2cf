/* What the files of FT share: transforms of eight lines at a time, and the arrays of one rank. */
#ifndef FT_H
#define FT_H

#include "npb_comm.h"

enum {
	FT_LANES = 8, /* lines transformed side by side, one cache line of doubles */
	FT_LONGEST = 2048
};

/* A transform of length n, a power of two. */
struct ft_plan {
	int n;
	double *re, *im; /* exp(-2 pi i k / n) */
};

/* Eight lines: element k of line l is re[k * FT_LANES + l] + i im[k * FT_LANES + l]. */
struct ft_lines {
	double *re, *im;
};

void ft_open_plan(struct ft_plan *plan, int n);
void ft_close_plan(struct ft_plan *plan);

struct ft_state {
	struct npb_run *run;
	int nx, ny, nz;
	int nxl, nyl;  /* of this rank: x in the space of frequencies, y in space */
	int piece;     /* lanes that lie side by side: FT_LANES, or nxl where that is less */
	int64_t slab;  /* doubles from one y to the next in a block: nz * nxl and a pad */
	int64_t block; /* doubles of a block: re and im of nyl * slab */
	struct ft_plan x, y, z;
	struct ft_lines work[2];
	/* Space of frequencies: [z][y][x of this rank]. */
	double *frequency_re, *frequency_im;
	/* Blocks between ranks, [rank][re, im][y of the one][z][x of the other]. */
	double *send, *receive; /* the same with one rank */
	/* Space: [re, im][y of this rank][x][z], in `send`. One y of it, while it is transformed:
	 */
	double *plane_re, *plane_im;
	double *decay_x, *decay_y, *decay_z; /* exp(-4 alpha pi^2 t k^2) */
};

/* Random numbers in space, and their transform. */
void ft_start(struct ft_state *s);
/* The state after t steps, transformed back to space. */
void ft_evolve(struct ft_state *s, int t);

#endif
