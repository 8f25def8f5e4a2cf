/*
 * The grids of MG and the exchange with neighbours, with as many messages as NASA's program. The
 * grid is cut along all three directions and one layer of ghosts is kept around each part. Every
 * operator is followed by its own exchange: with both neighbours along x, then y, then z; each
 * message takes along the ghosts that came before. Where a direction is not cut a rank sends to
 * itself. So a cycle has two exchanges a level on the way up and one on the way down, each of six
 * messages a rank.
 *
 * What differs: on grids with fewer points along a direction than there are ranks (with more than 8
 * ranks, the coarsest ones) NASA's programs leave the work to fewer and fewer ranks; here all of
 * them have these grids whole, after one MPI_Allreduce.
 */
#include <string.h>

#include "mg_grids.h"
#include "npb.h"

enum { AXES = 3 };

/* Ranks along x, y, z: x the fewest. */
static void divide(int ranks, int along[AXES])
{
	int bits = 0;

	while (1 << bits < ranks)
		bits++;
	along[0] = 1 << bits / 3;
	along[1] = 1 << (bits - bits / 3) / 2;
	along[2] = ranks / along[0] / along[1];
}

/* The rank at a place, which may lie beyond the ends. */
static int rank_at(const int along[AXES], int x, int y, int z)
{
	x = (x + along[0]) % along[0];
	y = (y + along[1]) % along[1];
	z = (z + along[2]) % along[2];
	return x + along[0] * (y + along[1] * z);
}

static void set_part(struct mg_level *l, const int along[AXES], int rank)
{
	const int x = rank % along[0], y = rank / along[0] % along[1];
	const int z = rank / along[0] / along[1];

	l->nx = l->n / along[0];
	l->ny = l->n / along[1];
	l->nz = l->n / along[2];
	l->x0 = x * l->nx;
	l->y0 = y * l->ny;
	l->z0 = z * l->nz;
	l->along_x =
	    (struct npb_neighbours){rank_at(along, x - 1, y, z), rank_at(along, x + 1, y, z)};
	l->along_y =
	    (struct npb_neighbours){rank_at(along, x, y - 1, z), rank_at(along, x, y + 1, z)};
	l->along_z =
	    (struct npb_neighbours){rank_at(along, x, y, z - 1), rank_at(along, x, y, z + 1)};
}

/* Messages as long as the largest side: that across z, of which there are the most ranks. */
static void open_sides(struct mg_grids *g, const struct mg_level *l)
{
	for (int i = 0; i < 4; i++)
		g->edge[i] = npb_alloc((size_t)(l->nx + 2) * (size_t)(l->ny + 2), sizeof(double));
}

static void open_field(struct mg_field *f, const struct mg_level *l)
{
	f->row = l->nx + 2;
	f->plane = f->row * (l->ny + 2);
	f->memory = npb_alloc((size_t)f->plane * (size_t)(l->nz + 2), sizeof(double));
	f->origin = f->memory + f->plane + f->row + 1;
}

void mg_open(struct mg_grids *g, struct npb_run *run, int finest)
{
	int along[AXES];

	memset(g, 0, sizeof(*g));
	g->run = run;
	g->finest = finest;
	divide(run->ranks, along);
	/* The coarsest with a point at least for each rank; z has the most ranks. */
	for (g->shared = 1; 1 << g->shared < along[2]; g->shared++)
		;
	for (int k = 1; k <= finest; k++) {
		struct mg_level *level = &g->level[k];

		level->n = level->nx = level->ny = level->nz = 1 << k;
		if (k >= g->shared)
			set_part(level, along, run->rank);
		open_field(&level->u, level);
		open_field(&level->r, level);
	}
	open_field(&g->fine_r, &g->level[finest]);
	open_sides(g, &g->level[finest]);
	g->all = npb_alloc((size_t)1 << 3 * g->shared, sizeof(double));
}

void mg_close(struct mg_grids *g)
{
	for (int k = 1; k <= g->finest; k++) {
		npb_free(g->level[k].u.memory);
		npb_free(g->level[k].r.memory);
	}
	for (int i = 0; i < 4; i++)
		npb_free(g->edge[i]);
	npb_free(g->fine_r.memory);
	npb_free(g->all);
}

uint64_t mg_bytes(int finest, int ranks)
{
	const uint64_t n = UINT64_C(1) << finest;
	int along[AXES];

	divide(ranks, along);
	/* u, v and r, two of them again on all coarser grids; sides. */
	return (n / (uint64_t)along[0] + 2) * (n / (uint64_t)along[1] + 2) *
		   (n / (uint64_t)along[2] + 2) * 28 +
	       (n + 2) * (n + 2) * 32 + (UINT64_C(8) << 20);
}

/* The points at `at` along an axis, to or from a message; of the axes before it with the ghosts. */
static int copy_side(const struct mg_level *l, const struct mg_field *f, int axis, int at,
		     double *message, bool pack)
{
	const int wide_x = axis > 0, wide_y = axis > 1;
	const int first[AXES] = {axis == 0 ? at : -wide_x, axis == 1 ? at : -wide_y,
				 axis == 2 ? at : 0};
	const int last[AXES] = {axis == 0 ? at : l->nx - 1 + wide_x,
				axis == 1 ? at : l->ny - 1 + wide_y, axis == 2 ? at : l->nz - 1};
	int count = 0;

	for (int z = first[2]; z <= last[2]; z++) {
		for (int y = first[1]; y <= last[1]; y++) {
			double *row = mg_row(f, z, y);

			for (int x = first[0]; x <= last[0]; x++, count++) {
				if (pack)
					message[count] = row[x];
				else
					row[x] = message[count];
			}
		}
	}
	return count;
}

static void fill_along(struct mg_grids *g, const struct mg_level *l, const struct mg_field *f,
		       int axis, struct npb_neighbours who)
{
	const int points = axis == 0 ? l->nx : axis == 1 ? l->ny : l->nz;
	const bool alone = g->run->ranks == 1 || l->n < 1 << g->shared;
	const int count = copy_side(l, f, axis, 0, g->edge[0], true);

	copy_side(l, f, axis, points - 1, g->edge[1], true);
	if (!alone)
		npb_exchange(g->run, who,
			     (struct npb_edges){g->edge[0], g->edge[1], g->edge[2], g->edge[3]},
			     count, MPI_DOUBLE);
	copy_side(l, f, axis, -1, g->edge[alone ? 1 : 2], false);
	copy_side(l, f, axis, points, g->edge[alone ? 0 : 3], false);
}

void mg_fill(struct mg_grids *g, const struct mg_level *l, const struct mg_field *f)
{
	fill_along(g, l, f, 0, l->along_x);
	fill_along(g, l, f, 1, l->along_y);
	fill_along(g, l, f, 2, l->along_z);
}
