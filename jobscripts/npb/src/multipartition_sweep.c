/*
 * A line solver's way through the grid: up through the layers of boxes, then down again. Between
 * layers, what the solver carries goes to the neighbour for all lines of a box in one message.
 */
#include <string.h>

#include "multipartition.h"

/* The directions of which a batch takes its lines, the faster one first in memory. */
static int inner_of(int d)
{
	return d == 0;
}

static int outer_of(int d)
{
	return d == 2 ? 1 : 2;
}

static int width(const struct cfd_box *box, int d)
{
	return box->high[d] - box->low[d];
}

static int batches_of(const struct cfd_box *box, int d)
{
	return (width(box, inner_of(d)) * width(box, outer_of(d)) + MP_LANES - 1) / MP_LANES;
}

static void set_lines(struct mp_lines *lines, const struct cfd_box *box, int d, int batch)
{
	const int a = inner_of(d), b = outer_of(d), n = width(box, a);
	const int all = n * width(box, b), from = batch * MP_LANES;
	const ptrdiff_t corner = cfd_at(box, box->low[0], box->low[1], box->low[2]);

	lines->box = box;
	lines->d = d;
	lines->rows = width(box, d);
	lines->first = box->first[d] + box->low[d];
	lines->lanes = all - from < MP_LANES ? all - from : MP_LANES;
	lines->stride = box->stride[d];
	lines->contiguous = true;
	for (int l = 0; l < MP_LANES; l++) {
		const int line = from + (l < lines->lanes ? l : lines->lanes - 1);

		lines->start[l] = corner + line % n * box->stride[a] + line / n * box->stride[b];
		lines->contiguous &= lines->start[l] == lines->start[0] + l;
	}
}

/* The part of batch i in an array of so many lanes per batch. */
static mp_lane *part(double *array, int i, int lanes)
{
	return (mp_lane *)array + (ptrdiff_t)i * lanes;
}

/* One box is all: each batch goes up and down while it is in the cache. */
static void sweep_alone(struct mp_grid *grid, int d, const struct mp_solver *solver, double dt)
{
	const struct cfd_box *box = grid->box;
	mp_lane *store = (mp_lane *)grid->store;
	struct mp_lines lines;

	for (int i = 0; i < batches_of(box, d); i++) {
		set_lines(&lines, box, d, i);
		memset(grid->in, 0, (size_t)solver->carry * sizeof(mp_lane));
		solver->up(&lines, dt, store, (mp_lane *)grid->in, (mp_lane *)grid->out);
		npb_worked(lines.lanes * lines.rows);
		solver->down(&lines, dt, store, (mp_lane *)grid->in, (mp_lane *)grid->out);
	}
}

static double *store_of(const struct mp_grid *grid, int s)
{
	return grid->store + (size_t)s * grid->box_store;
}

static void go_up(struct mp_grid *grid, int d, int s, const struct mp_solver *solver, double dt)
{
	const struct cfd_box *box = &grid->box[grid->layer[d][s]];
	struct mp_lines lines;

	for (int i = 0; i < batches_of(box, d); i++) {
		set_lines(&lines, box, d, i);
		solver->up(&lines, dt, part(store_of(grid, s), i, solver->store * lines.rows),
			   part(grid->in, i, solver->carry), part(grid->out, i, solver->carry));
		npb_worked(lines.lanes * lines.rows);
	}
}

static void go_down(struct mp_grid *grid, int d, int s, const struct mp_solver *solver, double dt)
{
	const struct cfd_box *box = &grid->box[grid->layer[d][s]];
	struct mp_lines lines;

	for (int i = 0; i < batches_of(box, d); i++) {
		set_lines(&lines, box, d, i);
		solver->down(&lines, dt, part(store_of(grid, s), i, solver->store * lines.rows),
			     part(grid->in, i, solver->answer), part(grid->out, i, solver->answer));
	}
}

/* Messages are as long as the longest of all ranks, so that both ends know it. */
static void pass(struct mp_grid *grid, int to, int from, int lanes)
{
	npb_shift(grid->run, grid->out, to, grid->in, from, (int)grid->batches * lanes * MP_LANES,
		  MPI_DOUBLE);
}

void mp_sweep(struct mp_grid *grid, int d, const struct mp_solver *solver, double dt)
{
	const int last = grid->q - 1;

	if (grid->q == 1) {
		sweep_alone(grid, d, solver, dt);
		return;
	}
	memset(grid->in, 0, grid->batches * (size_t)solver->carry * sizeof(mp_lane));
	for (int s = 0; s <= last; s++) {
		go_up(grid, d, s, solver, dt);
		if (s < last)
			pass(grid, grid->next[d], grid->before[d], solver->carry);
	}
	memset(grid->in, 0, grid->batches * (size_t)solver->answer * sizeof(mp_lane));
	for (int s = last; s >= 0; s--) {
		go_down(grid, d, s, solver, dt);
		if (s > 0)
			pass(grid, grid->before[d], grid->next[d], solver->answer);
	}
}
