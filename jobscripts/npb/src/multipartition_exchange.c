/* The ghosts of u: two layers on each face where another box follows. */
#include <string.h>

#include "multipartition.h"

/* Local indices of a slab, from low to high - 1. */
struct slab {
	int low[3], high[3];
};

/* CFD_GHOSTS layers from index `from` in direction d, all own points in the others. */
static struct slab slab_of(const struct cfd_box *box, int d, int from)
{
	struct slab slab;

	for (int e = 0; e < 3; e++) {
		slab.low[e] = e == d ? from : 0;
		slab.high[e] = e == d ? from + CFD_GHOSTS : box->count[e];
	}
	return slab;
}

static double *pack(const struct cfd_box *box, int d, int from, double *to)
{
	const struct slab slab = slab_of(box, d, from);
	const int n = slab.high[0] - slab.low[0];

	for (int m = 0; m < CFD_FIELDS; m++) {
		for (int k = slab.low[2]; k < slab.high[2]; k++) {
			for (int j = slab.low[1]; j < slab.high[1]; j++, to += n)
				memcpy(to, box->u[m] + cfd_at(box, slab.low[0], j, k),
				       (size_t)n * sizeof(double));
		}
	}
	return to;
}

static const double *unpack(const struct cfd_box *box, int d, int from, const double *in)
{
	const struct slab slab = slab_of(box, d, from);
	const int n = slab.high[0] - slab.low[0];

	for (int m = 0; m < CFD_FIELDS; m++) {
		for (int k = slab.low[2]; k < slab.high[2]; k++) {
			for (int j = slab.low[1]; j < slab.high[1]; j++, in += n)
				memcpy(box->u[m] + cfd_at(box, slab.low[0], j, k), in,
				       (size_t)n * sizeof(double));
		}
	}
	return in;
}

/* The four messages of a direction: to and from below, to and from above. */
enum { TO_BELOW, FROM_BELOW, TO_ABOVE, FROM_ABOVE, MESSAGES };

static double *message(const struct mp_grid *grid, int d, int which)
{
	return grid->faces + (size_t)(MESSAGES * d + which) * grid->ghosts;
}

static void pack_faces(const struct mp_grid *grid, int d)
{
	double *below = message(grid, d, TO_BELOW), *above = message(grid, d, TO_ABOVE);

	for (int s = 0; s < grid->q; s++) {
		const struct cfd_box *box = &grid->box[grid->layer[d][s]];

		if (s > 0)
			below = pack(box, d, 0, below);
		if (s < grid->q - 1)
			above = pack(box, d, box->count[d] - CFD_GHOSTS, above);
	}
}

static void unpack_ghosts(const struct mp_grid *grid, int d)
{
	const double *below = message(grid, d, FROM_BELOW), *above = message(grid, d, FROM_ABOVE);

	for (int s = 0; s < grid->q; s++) {
		const struct cfd_box *box = &grid->box[grid->layer[d][s]];

		if (s > 0)
			below = unpack(box, d, -CFD_GHOSTS, below);
		if (s < grid->q - 1)
			above = unpack(box, d, box->count[d], above);
	}
}

void mp_exchange(struct mp_grid *grid)
{
	struct npb_neighbours who[3];
	struct npb_edges edges[3];

	if (grid->q == 1)
		return;
	for (int d = 0; d < 3; d++) {
		who[d] = (struct npb_neighbours){grid->before[d], grid->next[d]};
		edges[d] = (struct npb_edges){
		    .to_below = message(grid, d, TO_BELOW),
		    .to_above = message(grid, d, TO_ABOVE),
		    .from_below = message(grid, d, FROM_BELOW),
		    .from_above = message(grid, d, FROM_ABOVE),
		};
		pack_faces(grid, d);
	}
	npb_exchange_all(grid->run, 3, who, edges, (int)grid->ghosts, MPI_DOUBLE);
	for (int d = 0; d < 3; d++)
		unpack_ghosts(grid, d);
}
