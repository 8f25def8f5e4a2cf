/* What the files of MG share: the grids, how they are shared out, and the steps of a V-cycle. */
#ifndef MG_GRIDS_H
#define MG_GRIDS_H

#include "npb_comm.h"

enum {
	MG_CHARGES = 10, /* of each sign */
	MG_LEVELS = 11
};

/* A function on a grid, as one rank has it: x runs fastest; x, y and z begin at -1 and
 * end one point behind the part: ghosts. */
struct mg_field {
	double *memory;
	double *origin;	    /* the point 0, 0, 0 */
	int64_t row, plane; /* strides of y and z */
};

NPB_INLINE double *mg_row(const struct mg_field *f, int z, int y)
{
	return f->origin + z * f->plane + y * f->row;
}

/* A grid of n^3 points; of these a rank has nx in x, ny in y, nz in z, from x0, y0 and z0 on. */
struct mg_level {
	int n, nx, ny, nz, x0, y0, z0;
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
	double *edge[4];	/* packed sides */
	struct mg_field fine_r; /* the residual of the finest level */
	double *all;		/* to make the largest whole grid */
};

void mg_open(struct mg_grids *g, struct npb_run *run, int finest);
void mg_close(struct mg_grids *g);
/* An upper estimate of the memory of one rank, bytes. */
uint64_t mg_bytes(int finest, int ranks);
/* Ghosts of a field from the neighbours, or from the rank's other side. */
void mg_fill(struct mg_grids *g, const struct mg_level *l, const struct mg_field *f);

/* Half of z, rounded down; z is at least -2. */
NPB_INLINE int mg_half(int z)
{
	return (z + 2) / 2 - 1;
}

/* `cycles` V-cycles; sum[0] and sum[cycles]: the sums of r^2 of all ranks before and after them. */
void mg_iterate(struct mg_grids *g, int cycles, double *sum);

#endif
