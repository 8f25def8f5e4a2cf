/* What the files of MG share: the grids, how they are shared out, and the steps of a V-cycle. */
#ifndef MG_H
#define MG_H

#include "npb_comm.h"

enum {
	MG_HALO = 2,	 /* planes and rows of the neighbours that are kept, on each side */
	MG_WHOLE = 16,	 /* grids up to this size are kept whole by every rank */
	MG_CHARGES = 10, /* of each sign */
	MG_LEVELS = 11
};

/* A function on a grid, as one rank has it: x runs fastest, from -1 to n; y and z from -MG_HALO,
 * or, with NASA's messages, from -1. */
struct mg_field {
	double *memory;
	double *origin;	    /* the point 0, 0, 0 */
	int64_t row, plane; /* strides of y and z */
};

NPB_INLINE double *mg_row(const struct mg_field *f, int z, int y)
{
	return f->origin + z * f->plane + y * f->row;
}

/* A grid of n^3 points; of these a rank has nx in x, ny in y, nz in z, from x0, y0 and z0 on; x is
 * cut with NASA's messages only. */
struct mg_level {
	int n, nx, ny, nz, x0, y0, z0;
	int halo; /* planes and rows of the neighbours that are kept, on each side */
	struct npb_neighbours along_x, along_y, along_z;
	struct mg_field u, r; /* r of the finest level: the right side v */
};

/* Rows around a row in the plane of y and z: itself, the four nearest, the four diagonal ones. */
struct mg_rows {
	const double *middle, *nearest[4], *diagonal[4];
};

NPB_INLINE struct mg_rows mg_rows_around(const double *below, const double *middle,
					 const double *above, int64_t row)
{
	return (struct mg_rows){middle,
				{below, above, middle - row, middle + row},
				{below - row, below + row, above - row, above + row}};
}

NPB_INLINE double mg_sum_of(const double *const row[4], int x)
{
	return (row[0][x] + row[1][x]) + (row[2][x] + row[3][x]);
}

struct mg_grids {
	struct npb_run *run;
	int finest;	   /* level[k] has 2^k points along each edge, k = 1 ... finest */
	int shared;	   /* the coarsest level that is shared out; below, all ranks do the same */
	double a[4], c[4]; /* of the operators A and S, by distance 0 ... 3 */
	struct mg_level level[MG_LEVELS];
	double *edge[4];	/* packed rows of y; with NASA's messages of any side */
	struct mg_field fine_r; /* with NASA's messages: the residual of the finest level */
	double *part, *all;	/* to make the largest whole grid */
	double *planes;		/* three planes of residuals, see mg_sweep.c */
};

/* How `ranks` ranks are divided: along z first, x is never cut. */
struct mg_division {
	int along_y, along_z;
};
struct mg_division mg_divide(int ranks);

void mg_open(struct mg_grids *g, struct npb_run *run, int finest);
void mg_open_field(struct mg_field *f, const struct mg_level *l);
void mg_close(struct mg_grids *g);
/* Fills `width` planes and rows around a field from the neighbours. */
void mg_fill_halo(struct mg_grids *g, struct mg_level *l, struct mg_field *f, int width);
/* From the own parts of r on level shared - 1 to the whole. */
void mg_make_whole(struct mg_grids *g);

/* v = +1 at the ten largest of n^3 random numbers, -1 at the ten smallest. */
void mg_place_charges(struct mg_grids *g);

/* One row of nx points each, mg_rows.c. r = v - A u; a[1] is 0. */
void mg_residual_row(const double *a, struct mg_rows u, const double *restrict v,
		     double *restrict r, int nx);
/* u += S r; c[3] is 0. */
void mg_smooth_row(const double *c, struct mg_rows r, double *restrict u, int nx);
/* P r: weights 1/2, 1/4, 1/8, 1/16 by distance; coarse point x is fine point 2x + 1. */
void mg_restrict_row(struct mg_rows r, double *restrict out, int coarse);
/* u = keep u + Q z: `z` are the four coarse rows around it, some of them the same. */
void mg_interpolate_row(const double *const z[4], double *restrict u, int coarse, double keep);
double mg_sum_of_squares(const double *restrict row, int nx);
/* Half of z, rounded down, also below 0. */
NPB_INLINE int mg_half(int z)
{
	return (z + 2 * MG_HALO) / 2 - MG_HALO;
}

/* mg_nasa.c: the same problem with NASA's messages. */
void mg_nasa_open(struct mg_grids *g, struct npb_run *run, int finest);
/* Ghosts of a field from the neighbours, or from the own other side. */
void mg_nasa_fill(struct mg_grids *g, const struct mg_level *l, const struct mg_field *f);
/* So many cycles; sum[0] and sum[cycles]: the sums of r^2 of all ranks before and after them. */
void mg_nasa_iterate(struct mg_grids *g, int cycles, double *sum);
uint64_t mg_nasa_bytes(int finest, int ranks);

/*
 * r = v - A u on the finest level, and r of the level below, P r, unless `last`. Returns the own
 * part of the sum of r^2.
 */
double mg_residual(struct mg_grids *g, bool last);
/* r of level k - 1 from r of level k. */
void mg_restrict(struct mg_grids *g, int k);
/* u = S r on the coarsest level. */
void mg_solve_coarsest(struct mg_grids *g);
/* u += Q u(k - 1), u += S (r - A u); on all but the finest level u was 0 before. */
void mg_correct(struct mg_grids *g, int k);

#endif
