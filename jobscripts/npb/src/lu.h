/*
 * LU: what its files share. The grid, the right-hand side and the constants are those of cfd.h.
 */
#ifndef LU_H
#define LU_H

#include "cfd.h"

/* Over-relaxation (section 3.4.2), and what follows from it in the last step of an iteration. */
#define LU_OMEGA 1.2
#define LU_GAIN	 (1 / (LU_OMEGA * (2 - LU_OMEGA)))

struct lu_problem {
	int points; /* of each direction */
	int iterations;
	double step; /* of time */
	double residual[CFD_FIELDS], error[CFD_FIELDS], integral;
};

enum lu_side { LU_WEST, LU_EAST, LU_SOUTH, LU_NORTH, LU_SIDES };

/* This rank's part: a pencil of the grid, all of z over a rectangle of x and y. */
struct lu_part {
	struct npb_run *run;
	int ranks[2], at[2];	 /* of x and y: number of ranks, own place */
	int neighbour[LU_SIDES]; /* rank, or MPI_PROC_NULL */
	double *halo[2];	 /* messages of lu_exchange_halos: out, in */
	size_t halo_size;
};

/*
 * The triangular sweeps. Points with the same i + j depend on none of each other; such a diagonal
 * of a plane is one vector here. Planes are stored by diagonals, (i, j) at row (i + j) mod rows
 * and lane j: every pair has a place of its own, and none is empty when ni = nj. Indices count
 * the inner points of the part, from 0.
 */
enum {
	LU_INVERSE,		  /* 1 / density */
	LU_SPEED,		  /* three components */
	LU_ENERGY = LU_SPEED + 3, /* by mass */
	LU_CHANGE,		  /* of U: dt L(U), then what each sweep makes of it */
	LU_VALUES = LU_CHANGE + CFD_FIELDS
};

struct lu_sweep {
	int n[3]; /* inner points */
	int rows, lanes;
	double *point; /* [n[2]][rows][LU_VALUES][lanes] */
	/* What the neighbours before add to a point: from x, y (this diagonal and next), z. */
	double *x, *y[2], *z; /* [CFD_FIELDS][lanes], z: [rows] of them */
	/* The same across the borders of the part: [n[1] or n[0]][CFD_FIELDS] */
	double *border[LU_SIDES];
	double *squares; /* [lanes], of the changes loaded */
	/* Coefficients of the blocks, see lu_sweep.c. */
	double diagonal, viscous, heating, conducting;
	double convection, curvature, diffusion[3];
};

void lu_open_sweep(struct lu_sweep *sweep, const struct cfd_box *box, double step);
void lu_close_sweep(struct lu_sweep *sweep);
/* One plane, after what came from the borders. */
void lu_sweep_lower(struct lu_sweep *sweep, int plane);
void lu_sweep_upper(struct lu_sweep *sweep, int plane);
void lu_begin_sweep(struct lu_sweep *sweep);
/* Plane k of the box into diagonals; and the change back, added to u. */
void lu_load_plane(struct lu_sweep *sweep, const struct cfd_box *box, int k);
void lu_store_plane(const struct lu_sweep *sweep, const struct cfd_box *box, int k);
/* Sum of squares of dt L(U) in the planes loaded since the last call. */
double lu_take_squares(struct lu_sweep *sweep);

#endif
