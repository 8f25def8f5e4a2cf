#include <math.h>
#include <stdio.h>
#include <string.h>

#include "multipartition.h"
#include "npb.h"

static int root_of(int ranks)
{
	int q = 1;

	while ((q + 1) * (q + 1) <= ranks)
		q++;
	return q;
}

int mp_most_ranks(int n)
{
	return (n / 3) * (n / 3);
}

/* The first point of layer s: the first n mod q layers have one point more. */
static int first_of(int n, int q, int s)
{
	return s * (n / q) + (s < n % q ? s : n % q);
}

static int widest(int n, int q)
{
	return first_of(n, q, 1);
}

static size_t batches(int n, int q)
{
	const size_t width = (size_t)widest(n, q);

	return (width * width + MP_LANES - 1) / MP_LANES;
}

/* Doubles of a message of ghosts of all boxes, as long as the longest of all ranks. */
static size_t ghosts(int n, int q)
{
	const size_t width = (size_t)widest(n, q);

	return width * width * CFD_GHOSTS * CFD_FIELDS * (size_t)(q - 1);
}

/* ... of a message of a sweep. */
static size_t carried(const struct mp_sizes *sizes, int q)
{
	return batches(sizes->n, q) * (size_t)sizes->carry * MP_LANES;
}

enum { FACES = 12 }; /* messages of ghosts: out and in, six faces */

/* Of a box; only of the batch at hand when one box is all. */
static size_t store_size(const struct mp_sizes *sizes, int q)
{
	const size_t point = (size_t)sizes->store * MP_LANES, width = (size_t)widest(sizes->n, q);

	return width * point * (q == 1 ? 1 : batches(sizes->n, q));
}

uint64_t mp_bytes(const struct mp_sizes *sizes, int ranks)
{
	const int q = root_of(ranks), width = widest(sizes->n, q);
	const int count[3] = {width, width, width};

	return (uint64_t)q * cfd_box_bytes(count, sizes->sound) +
	       ((uint64_t)q * store_size(sizes, q) + FACES * ghosts(sizes->n, q) +
		2 * carried(sizes, q)) *
		   sizeof(double) +
	       (UINT64_C(4) << 20);
}

static int rank_at(int q, int a, int b)
{
	return (b + q) % q * q + (a + q) % q;
}

/* (a, b) of the owner of the next box, less one's own; upwards in z, both are one less. */
static void find_neighbours(struct mp_grid *grid, int a, int b)
{
	static const int shift[3][2] = {{1, 0}, {0, 1}, {-1, -1}};

	for (int d = 0; d < 3; d++) {
		grid->next[d] = rank_at(grid->q, a + shift[d][0], b + shift[d][1]);
		grid->before[d] = rank_at(grid->q, a - shift[d][0], b - shift[d][1]);
	}
}

static void open_boxes(struct mp_grid *grid, const struct mp_sizes *sizes, int a, int b)
{
	const int n = sizes->n, q = grid->q, total[3] = {n, n, n};
	int first[3], count[3];

	for (int z = 0; z < q; z++) {
		const int layer[3] = {(a + z) % q, (b + z) % q, z};

		for (int d = 0; d < 3; d++) {
			grid->layer[d][layer[d]] = z;
			first[d] = first_of(n, q, layer[d]);
			count[d] = first_of(n, q, layer[d] + 1) - first[d];
		}
		cfd_open_box(&grid->box[z], total, first, count, sizes->sound);
	}
}

static void mp_open(struct mp_grid *grid, struct npb_run *run, const struct mp_sizes *sizes)
{
	const int q = root_of(run->ranks), a = run->rank % q, b = run->rank / q;

	grid->run = run;
	grid->q = q;
	grid->box = npb_alloc((size_t)q, sizeof(*grid->box));
	for (int d = 0; d < 3; d++)
		grid->layer[d] = npb_alloc((size_t)q, sizeof(int));
	find_neighbours(grid, a, b);
	open_boxes(grid, sizes, a, b);
	grid->ghosts = ghosts(sizes->n, q);
	grid->batches = batches(sizes->n, q);
	grid->faces = npb_alloc(FACES * grid->ghosts, sizeof(double));
	grid->out = npb_alloc(carried(sizes, q), sizeof(double));
	grid->in = npb_alloc(carried(sizes, q), sizeof(double));
	grid->box_store = store_size(sizes, q);
	grid->store = npb_alloc((size_t)q * grid->box_store, sizeof(double));
}

static void mp_close(struct mp_grid *grid)
{
	for (int z = 0; z < grid->q; z++)
		cfd_close_box(&grid->box[z]);
	for (int d = 0; d < 3; d++)
		npb_free(grid->layer[d]);
	npb_free(grid->box);
	npb_free(grid->faces);
	npb_free(grid->out);
	npb_free(grid->in);
	npb_free(grid->store);
}

/* The ghosts of u: two layers on each face where another box follows. */

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

/*
 * A line solver's way through the grid: up through the layers of boxes, then down again. Between
 * layers, what the solver carries goes to the neighbour for all lines of a box in one message.
 */

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

/* The time steps, and what is compared with the official results. */

static void start(struct mp_grid *grid)
{
	for (int z = 0; z < grid->q; z++)
		cfd_set_initial(&grid->box[z]);
}

static void compare(struct npb_run *run, const char *what, const double *value,
		    const double *official)
{
	char name[32];

	for (int m = 0; m < CFD_FIELDS; m++) {
		snprintf(name, sizeof(name), "%s %d", what, m + 1);
		npb_check(run, name, value[m], official[m], 1e-8);
	}
}

/* After each step the root mean square of dU/dt, over all components: what the next step began
 * with, and after the last one what is verified. */
static void print_residuals(struct mp_grid *grid, const struct mp_problem *problem, double *squares)
{
	const double inner = problem->n - 2, points = inner * inner * inner;
	const double scale = 1 / (problem->dt * problem->dt);
	const int last = problem->iterations;

	npb_allreduce(grid->run, squares, last, MPI_DOUBLE, MPI_SUM);
	for (int i = 1; i < last; i++)
		npb_residual(grid->run, sqrt(squares[i] * scale / points));
	npb_residual(grid->run, sqrt(squares[last] / points));
}

/* Norms of dU/dt and of the distance to the exact solution; the sum of squares of the first. */
static double verify(struct mp_grid *grid, const struct mp_problem *problem)
{
	const int total[3] = {problem->n, problem->n, problem->n};
	double sum[2][CFD_FIELDS] = {0}, squares = 0;

	mp_exchange(grid);
	for (int z = 0; z < grid->q; z++) {
		cfd_primitives(&grid->box[z]);
		cfd_rate(&grid->box[z], 1);
		cfd_sum_rates(&grid->box[z], sum[0]);
		cfd_sum_errors(&grid->box[z], sum[1]);
	}
	npb_allreduce(grid->run, sum, 2 * CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
	for (int m = 0; m < CFD_FIELDS; m++)
		squares += sum[0][m];
	cfd_norms(total, sum[0]);
	cfd_norms(total, sum[1]);
	compare(grid->run, "residual", sum[0], problem->residual);
	compare(grid->run, "error", sum[1], problem->error);
	return squares;
}

void mp_run(struct npb_run *run, const struct mp_problem *problem, const struct mp_sizes *sizes,
	    void (*step)(struct mp_grid *grid, double dt))
{
	const int64_t inner = problem->n - 2;
	double squares[NPB_MAX_RESIDUALS] = {0};
	struct mp_grid grid = {0};

	mp_open(&grid, run, sizes);
	for (int z = 0; z < grid.q; z++)
		cfd_set_forcing(&grid.box[z]);
	start(&grid);
	step(&grid, problem->dt); /* touches all memory, untimed */
	start(&grid);
	npb_timer_start(run);
	for (int i = 0; i < npb_steps(problem->iterations); i++) {
		grid.squares = 0;
		step(&grid, problem->dt);
		squares[i] = grid.squares;
	}
	npb_timer_stop(run);
	squares[problem->iterations] = verify(&grid, problem);
	print_residuals(&grid, problem, squares);
	npb_check_work(run, 3 * problem->iterations * inner * inner * inner);
	mp_close(&grid);
}
