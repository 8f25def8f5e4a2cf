/*
 * Who has which part of the grid, and the ghosts of u. Ranks form a rectangle over x and y, x the
 * fastest; where the points cannot be shared out evenly, the first ranks have one more.
 */
#include "lu.h"
#include "npb.h"
#include "npb_comm.h"

void lu_factors(int ranks, int factor[2])
{
	factor[0] = 1;
	while (4 * factor[0] * factor[0] <= ranks)
		factor[0] *= 2;
	factor[1] = ranks / factor[0];
}

static int neighbour(const struct lu_part *part, int x, int y)
{
	if (x < 0 || x >= part->ranks[0] || y < 0 || y >= part->ranks[1])
		return MPI_PROC_NULL;
	return y * part->ranks[0] + x;
}

static size_t longest(size_t a, size_t b)
{
	return a > b ? a : b;
}

void lu_open_part(struct lu_part *part, struct npb_run *run, struct cfd_box *box)
{
	const int points = lu_problems[run->class].points;
	const int total[3] = {points, points, points};
	int first[3] = {0, 0, 0}, count[3] = {points, points, points};

	part->run = run;
	lu_factors(run->ranks, part->ranks);
	part->at[0] = run->rank % part->ranks[0];
	part->at[1] = run->rank / part->ranks[0];
	for (int d = 0; d < 2; d++) {
		const int even = points / part->ranks[d], more = points % part->ranks[d];

		count[d] = even + (part->at[d] < more);
		first[d] = part->at[d] * even + (part->at[d] < more ? part->at[d] : more);
	}
	part->neighbour[LU_WEST] = neighbour(part, part->at[0] - 1, part->at[1]);
	part->neighbour[LU_EAST] = neighbour(part, part->at[0] + 1, part->at[1]);
	part->neighbour[LU_SOUTH] = neighbour(part, part->at[0], part->at[1] - 1);
	part->neighbour[LU_NORTH] = neighbour(part, part->at[0], part->at[1] + 1);
	cfd_open_box(box, total, first, count, false);
	/* One side's message: two layers of points of five components. */
	part->halo_size = longest((size_t)count[0], (size_t)count[1]) * (size_t)count[2] *
			  CFD_GHOSTS * CFD_FIELDS;
	for (int way = 0; way < 2; way++)
		part->halo[way] = npb_alloc(2 * part->halo_size, sizeof(double));
}

void lu_close_part(struct lu_part *part)
{
	for (int way = 0; way < 2; way++)
		npb_free(part->halo[way]);
}

/* A message and layers of u beginning at index `layer` of direction d; returns its length. */
static int copy_layers(const struct cfd_box *box, int d, int layer, double *message, bool pack)
{
	const ptrdiff_t across = box->stride[d], along = box->stride[1 - d];
	double *begin = message;

	for (int m = 0; m < CFD_FIELDS; m++) {
		for (int k = 0; k < box->count[2]; k++) {
			for (int l = 0; l < CFD_GHOSTS; l++) {
				double *u = box->u[m] + k * box->stride[2] + (layer + l) * across;
				const int n = box->count[1 - d];

				for (int i = 0; pack && i < n; i++)
					message[i] = u[i * along];
				for (int i = 0; !pack && i < n; i++)
					u[i * along] = message[i];
				message += n;
			}
		}
	}
	return (int)(message - begin);
}

void lu_exchange_halos(struct lu_part *part, const struct cfd_box *box)
{
	for (int d = 0; d < 2; d++) {
		const int below = part->neighbour[2 * d], above = part->neighbour[2 * d + 1];
		double *out = part->halo[0], *in = part->halo[1];
		double *out_above = out + part->halo_size, *in_above = in + part->halo_size;
		int count;

		if (part->ranks[d] == 1)
			continue;
		count = copy_layers(box, d, 0, out, true);
		copy_layers(box, d, box->count[d] - CFD_GHOSTS, out_above, true);
		npb_exchange(part->run, (struct npb_neighbours){below, above},
			     (struct npb_edges){out, out_above, in, in_above}, count, MPI_DOUBLE);
		if (below != MPI_PROC_NULL)
			copy_layers(box, d, -CFD_GHOSTS, in, false);
		if (above != MPI_PROC_NULL)
			copy_layers(box, d, box->count[d], in_above, false);
	}
}
