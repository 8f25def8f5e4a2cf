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

/* A function on a grid, as one rank has it: x runs fastest, from -1 to n; y and z from -MG_HALO. */
struct mg_field {
	double *memory;
	double *origin;	    /* the point 0, 0, 0 */
	int64_t row, plane; /* strides of y and z */
};

NPB_INLINE double *mg_row(const struct mg_field *f, int z, int y)
{
	return f->origin + z * f->plane + y * f->row;
}

/* A grid of n^3 points; of these a rank has n in x, ny in y, nz in z, from y0 and z0 on. */
struct mg_level {
	int n, ny, nz, y0, z0;
	struct npb_neighbours along_y, along_z;
	struct mg_field u, r; /* r of the finest level: the right side v */
};

struct mg_grids {
	struct npb_run *run;
	int finest;	   /* level[k] has 2^k points along each edge, k = 1 ... finest */
	int shared;	   /* the coarsest level that is shared out; below, all ranks do the same */
	double a[4], c[4]; /* of the operators A and S, by distance 0 ... 3 */
	struct mg_level level[MG_LEVELS];
	double *edge[4];    /* packed rows of y */
	double *part, *all; /* to make the largest whole grid */
	double *planes;	    /* three planes of residuals, see mg_sweep.c */
};

/* How `ranks` ranks are divided: along z first, x is never cut. */
struct mg_division {
	int along_y, along_z;
};
struct mg_division mg_divide(int ranks);

void mg_open(struct mg_grids *g, struct npb_run *run, int finest);
void mg_close(struct mg_grids *g);
/* Fills `width` planes and rows around a field from the neighbours. */
void mg_fill_halo(struct mg_grids *g, struct mg_level *l, struct mg_field *f, int width);
/* From the own parts of r on level shared - 1 to the whole. */
void mg_make_whole(struct mg_grids *g);

/* v = +1 at the ten largest of n^3 random numbers, -1 at the ten smallest. */
void mg_place_charges(struct mg_grids *g);

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
