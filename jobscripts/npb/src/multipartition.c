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

void mp_open(struct mp_grid *grid, struct npb_run *run, const struct mp_sizes *sizes)
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

void mp_close(struct mp_grid *grid)
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
