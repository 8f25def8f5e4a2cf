/* The ghosts of u: two layers on each face where another box follows. */
#include <string.h>

#include "mp.h"

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

/* Upper faces to the next boxes' lower ghosts. */
static void exchange_up(struct mp_grid *grid, int d)
{
	double *out = grid->out;
	const double *in = grid->in;

	for (int s = 0; s < grid->q - 1; s++) {
		const struct cfd_box *box = &grid->box[grid->layer[d][s]];

		out = pack(box, d, box->count[d] - CFD_GHOSTS, out);
	}
	npb_shift(grid->run, grid->out, grid->next[d], grid->in, grid->before[d], (int)grid->ghosts,
		  MPI_DOUBLE);
	for (int s = 1; s < grid->q; s++)
		in = unpack(&grid->box[grid->layer[d][s]], d, -CFD_GHOSTS, in);
}

/* Lower faces to the upper ghosts of the boxes before. */
static void exchange_down(struct mp_grid *grid, int d)
{
	double *out = grid->out;
	const double *in = grid->in;

	for (int s = 1; s < grid->q; s++)
		out = pack(&grid->box[grid->layer[d][s]], d, 0, out);
	npb_shift(grid->run, grid->out, grid->before[d], grid->in, grid->next[d], (int)grid->ghosts,
		  MPI_DOUBLE);
	for (int s = 0; s < grid->q - 1; s++) {
		const struct cfd_box *box = &grid->box[grid->layer[d][s]];

		in = unpack(box, d, box->count[d], in);
	}
}

void mp_exchange(struct mp_grid *grid)
{
	if (grid->q == 1)
		return;
	for (int d = 0; d < 3; d++) {
		exchange_up(grid, d);
		exchange_down(grid, d);
	}
}
