/*
 * The multipartition scheme, by which BT and SP share out the grid: P = q^2 ranks cut it into
 * q x q x q boxes, and rank (a, b) owns the q boxes ((a + z) mod q, (b + z) mod q, z), one in
 * every layer of every direction. So whenever a line solver passes through the grid from layer to
 * layer, all ranks have exactly one box to work on. The neighbours of all boxes of a rank, in one
 * direction, belong to one rank.
 *
 * Communicated: before dU/dt, two layers of u on each face, all boxes in one message, to
 * and from six neighbours at once (mp_exchange). In each of the three sweeps, for each line of a
 * box, what the next box needs to go on: q - 1 messages up and q - 1 down (mp_sweep). At the end
 * the norms.
 */
#ifndef MULTIPARTITION_H
#define MULTIPARTITION_H

#include "cfd.h"
#include "npb_comm.h"

/* So many lines are solved at once, one in each lane of a vector. */
enum { MP_LANES = 8 };
typedef double mp_lane __attribute__((vector_size(MP_LANES * sizeof(double)), may_alias));

struct mp_grid {
	struct npb_run *run;
	int q;
	struct cfd_box *box;	/* q; box[z] is in layer z of the third direction */
	int *layer[3];		/* layer[d][s]: which box is in layer s of direction d */
	int next[3], before[3]; /* ranks of the neighbours */
	double *faces;		/* messages of ghosts, 12 */
	size_t ghosts;		/* doubles of each */
	double *out, *in;	/* messages of a sweep */
	size_t batches;		/* of the largest box */
	double squares;		/* of dt dU/dt, added up by the steps */
	double *store;		/* what sweeps leave for the way down */
	size_t box_store;	/* doubles of it for a box */
};

/* A batch of lines of one box along direction d; points 0 ... rows - 1, boundary left out. */
struct mp_lines {
	const struct cfd_box *box;
	int d, rows;
	int first;		   /* place of point 0 in the whole grid */
	int lanes;		   /* in use; the others repeat the last one */
	bool contiguous;	   /* the lanes are neighbours in memory */
	ptrdiff_t start[MP_LANES]; /* element of point 0 */
	ptrdiff_t stride;
};

/*
 * A solver of many systems of equations along lines: elimination from point 0 up, substitution
 * from the last point down. Boundary points are left out, as nothing changes there: the carry
 * from the boundary is all 0.
 */
struct mp_solver {
	int store;  /* lanes that `up` leaves for `down`, per point */
	int carry;  /* lanes that `up` hands to the next box ... */
	int answer; /* ... and `down` to the one before */
	void (*up)(const struct mp_lines *lines, double dt, mp_lane *store, const mp_lane *from,
		   mp_lane *to);
	void (*down)(const struct mp_lines *lines, double dt, const mp_lane *store,
		     const mp_lane *from, mp_lane *to);
};

/* One lane-vector of `field` at a point of the batch, and back. */
NPB_INLINE void mp_get(const struct mp_lines *lines, const double *field, int row, mp_lane *to)
{
	const double *from = field + row * lines->stride;

	const ptrdiff_t *at = lines->start;
	mp_lane value;

	if (lines->contiguous)
		__builtin_memcpy(&value, from + at[0], sizeof(value));
	else
		value = (mp_lane){from[at[0]], from[at[1]], from[at[2]], from[at[3]],
				  from[at[4]], from[at[5]], from[at[6]], from[at[7]]};
	*to = value;
}

NPB_INLINE void mp_put(const struct mp_lines *lines, const mp_lane *from, double *field, int row)
{
	double *to = field + row * lines->stride;

	if (lines->contiguous)
		__builtin_memcpy(to + lines->start[0], from, sizeof(*from));
	else
		for (int l = 0; l < lines->lanes; l++)
			to[lines->start[l]] = (*from)[l];
}

/* n points in each direction; `store`, `carry`: the largest of the solvers. */
struct mp_sizes {
	int n;
	bool sound;
	int store, carry;
};

uint64_t mp_bytes(const struct mp_sizes *sizes, int ranks);
/* Boxes of three points at least. */
int mp_most_ranks(int n);

/* Fills the ghosts of u. */
void mp_exchange(struct mp_grid *grid);
/* The solver on all lines of direction d. */
void mp_sweep(struct mp_grid *grid, int d, const struct mp_solver *solver, double dt);

/* A program: its class, what it computes in a time step, and the official results. */
struct mp_problem {
	int n, iterations;
	double dt;
	double residual[CFD_FIELDS], error[CFD_FIELDS]; /* official, limit 1e-8 */
};

/* A run: one step to warm up, from the start again, verified. */
void mp_run(struct npb_run *run, const struct mp_problem *problem, const struct mp_sizes *sizes,
	    void (*step)(struct mp_grid *grid, double dt));

#endif
