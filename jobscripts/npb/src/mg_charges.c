/* The right side of MG: random numbers for all points, x fastest; only the extremes matter. */
#include <string.h>

#include "mg_grids.h"
#include "npb.h"

#define SEED UINT64_C(314159265)

struct candidate {
	double value; /* negated for the smallest, so that both search for the largest */
	int64_t point;
};

/* Sorted, the largest first; a value of 0 is below all of them, as -2 does for the negated. */
static void insert(struct candidate *best, struct candidate new)
{
	int i = MG_CHARGES - 1;

	if (new.value <= best[i].value)
		return;
	for (; i > 0 && best[i - 1].value < new.value; i--)
		best[i] = best[i - 1];
	best[i] = new;
}

static void search_row(const double *value, int n, int64_t first, struct candidate *largest,
		       struct candidate *smallest)
{
	for (int x = 0; x < n; x++) {
		if (value[x] > largest[MG_CHARGES - 1].value)
			insert(largest, (struct candidate){value[x], first + x});
		if (-value[x] > smallest[MG_CHARGES - 1].value)
			insert(smallest, (struct candidate){-value[x], first + x});
	}
}

static void search(const struct mg_level *l, struct candidate *largest, struct candidate *smallest)
{
	double *value = npb_alloc((size_t)l->nx, sizeof(double));

	for (int z = 0; z < l->nz; z++) {
		int64_t first = ((int64_t)(l->z0 + z) * l->n + l->y0) * l->n + l->x0;

		for (int y = 0; y < l->ny; y++, first += l->n) {
			uint64_t seed = npb_jump(SEED, (uint64_t)first);

			npb_fill_uniform(&seed, value, (size_t)l->nx);
			search_row(value, l->nx, first, largest, smallest);
		}
	}
	npb_free(value);
}

/* The best of all ranks, on all ranks, as NASA's program does it: one after the other, by the value
 * and by its place. */
static void merge(struct npb_run *run, struct candidate *best)
{
	struct candidate all[MG_CHARGES];
	int next = 0;

	for (int i = 0; i < MG_CHARGES; i++) {
		double top = best[next].value;
		int64_t point[2] = {-1, -1};
		const struct candidate mine = best[next];

		npb_allreduce(run, &top, 1, MPI_DOUBLE, MPI_MAX);
		if (mine.value >= top) {
			point[0] = mine.point;
			next++;
		}
		npb_allreduce(run, point, 2, MPI_INT64_T, MPI_MAX);
		all[i] = (struct candidate){top, point[0]};
	}
	memcpy(best, all, sizeof(all));
}

/* A point may be seen up to three times in a direction: the grid is periodic. */
static void set_point(struct mg_level *l, int64_t point, double charge)
{
	const int n = l->n, x = (int)(point % n), y = (int)(point / n % n);
	const int z = (int)(point / n / n);

	for (int iz = z - l->z0 - n; iz < l->nz + 1; iz += n) {
		for (int iy = y - l->y0 - n; iy < l->ny + 1; iy += n) {
			if (iz < -1 || iy < -1)
				continue;
			for (int ix = x - l->x0 - n; ix <= l->nx; ix += n) {
				if (ix >= -1)
					mg_row(&l->r, iz, iy)[ix] = charge;
			}
		}
	}
}

void mg_place_charges(struct mg_grids *g)
{
	struct candidate largest[MG_CHARGES], smallest[MG_CHARGES];
	struct mg_level *l = &g->level[g->finest];

	for (int i = 0; i < MG_CHARGES; i++)
		largest[i] = smallest[i] = (struct candidate){-2, 0};
	search(l, largest, smallest);
	merge(g->run, largest);
	merge(g->run, smallest);
	for (int i = 0; i < MG_CHARGES; i++) {
		set_point(l, smallest[i].point, -1);
		set_point(l, largest[i].point, 1);
	}
	mg_fill(g, l, &l->r);
}
