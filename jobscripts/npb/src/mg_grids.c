/* The grids of MG: how they are shared out, and the exchange with neighbours. */
#include <string.h>

#include "mg.h"
#include "npb_verify.h"

struct mg_division mg_divide(int ranks)
{
	struct mg_division d = {1, 1};

	/* Whole planes need no packing: up to 8 ranks along z only, then in turns. */
	while (d.along_y * d.along_z < ranks) {
		if (d.along_z < 8 || d.along_z <= d.along_y)
			d.along_z *= 2;
		else
			d.along_y *= 2;
	}
	return d;
}

void mg_open_field(struct mg_field *f, const struct mg_level *l)
{
	f->row = l->nx + 2;
	f->plane = f->row * (l->ny + 2 * l->halo);
	f->memory = npb_alloc((size_t)f->plane * (size_t)(l->nz + 2 * l->halo), sizeof(double));
	f->origin = f->memory + l->halo * f->plane + l->halo * f->row + 1;
}

static void set_part(struct mg_level *l, const struct npb_run *run, struct mg_division d)
{
	const int y = run->rank % d.along_y, z = run->rank / d.along_y;

	l->ny = l->n / d.along_y;
	l->nz = l->n / d.along_z;
	l->y0 = y * l->ny;
	l->z0 = z * l->nz;
	l->along_y.below = z * d.along_y + (y + d.along_y - 1) % d.along_y;
	l->along_y.above = z * d.along_y + (y + 1) % d.along_y;
	l->along_z.below = (z + d.along_z - 1) % d.along_z * d.along_y + y;
	l->along_z.above = (z + 1) % d.along_z * d.along_y + y;
}

static void set_whole(struct mg_level *l, const struct npb_run *run)
{
	l->ny = l->nz = l->n;
	l->y0 = l->z0 = 0;
	l->along_y = l->along_z = (struct npb_neighbours){run->rank, run->rank};
}

/* The coarsest level of which each rank has at least MG_HALO rows and planes, and large enough. */
static int coarsest_shared(struct mg_division d, int finest)
{
	const int most = d.along_z > d.along_y ? d.along_z : d.along_y;
	int k = 1;

	if (most == 1)
		return 1;
	while (k < finest && ((1 << k) <= MG_WHOLE || (1 << k) < MG_HALO * most))
		k++;
	return k;
}

static void open_buffers(struct mg_grids *g)
{
	const struct mg_level *l = &g->level[g->finest], *whole = &g->level[g->shared - 1];
	const size_t edge = (size_t)(l->nz + 2 * MG_HALO) * MG_HALO * (size_t)l->u.row;
	int64_t plane = 0;

	for (int i = 0; i < 4; i++)
		g->edge[i] = l->ny == l->n ? NULL : npb_alloc(edge, sizeof(double));
	/* With many ranks a whole grid has larger planes than the part of a finer one. */
	for (int k = 1; k <= g->finest; k++)
		plane = g->level[k].u.plane > plane ? g->level[k].u.plane : plane;
	g->planes = npb_alloc(3 * (size_t)plane, sizeof(double));
	g->part = g->all = NULL;
	if (g->shared > 1) {
		const size_t points = (size_t)whole->n * (size_t)whole->n * (size_t)whole->n;

		g->part = npb_alloc(points / (size_t)g->run->ranks, sizeof(double));
		g->all = npb_alloc(points, sizeof(double));
	}
}

void mg_open(struct mg_grids *g, struct npb_run *run, int finest)
{
	const struct mg_division d = mg_divide(run->ranks);

	memset(g, 0, sizeof(*g));
	g->run = run;
	g->finest = finest;
	g->shared = coarsest_shared(d, finest);
	for (int k = 1; k <= finest; k++) {
		struct mg_level *l = &g->level[k];

		l->n = l->nx = 1 << k;
		l->halo = MG_HALO;
		if (k >= g->shared)
			set_part(l, run, d);
		else
			set_whole(l, run);
		mg_open_field(&l->u, l);
		mg_open_field(&l->r, l);
	}
	open_buffers(g);
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
	npb_free(g->planes);
	npb_free(g->part);
	npb_free(g->all);
}

/* Rows y ... y + width - 1 of all planes, into a buffer or out of it. */
static void pack_rows(const struct mg_level *l, const struct mg_field *f, int y, int width,
		      double *buffer)
{
	const size_t size = (size_t)width * (size_t)f->row;

	for (int z = -MG_HALO; z < l->nz + MG_HALO; z++, buffer += size)
		memcpy(buffer, mg_row(f, z, y) - 1, size * sizeof(double));
}

static void unpack_rows(const struct mg_level *l, struct mg_field *f, int y, int width,
			const double *buffer)
{
	const size_t size = (size_t)width * (size_t)f->row;

	for (int z = -MG_HALO; z < l->nz + MG_HALO; z++, buffer += size)
		memcpy(mg_row(f, z, y) - 1, buffer, size * sizeof(double));
}

static void copy_rows(const struct mg_level *l, struct mg_field *f, int from, int to, int width)
{
	const size_t size = (size_t)width * (size_t)f->row;

	for (int z = -MG_HALO; z < l->nz + MG_HALO; z++)
		memcpy(mg_row(f, z, to) - 1, mg_row(f, z, from) - 1, size * sizeof(double));
}

static void fill_along_y(struct mg_grids *g, struct mg_level *l, struct mg_field *f, int width)
{
	const int count = (l->nz + 2 * MG_HALO) * width * (int)f->row;
	const struct npb_edges edges = {g->edge[0], g->edge[1], g->edge[2], g->edge[3]};

	if (l->ny == l->n) {
		copy_rows(l, f, l->ny - width, -width, width);
		copy_rows(l, f, 0, l->ny, width);
		return;
	}
	pack_rows(l, f, 0, width, g->edge[0]);
	pack_rows(l, f, l->ny - width, width, g->edge[1]);
	npb_exchange(g->run, l->along_y, edges, count, MPI_DOUBLE);
	unpack_rows(l, f, -width, width, g->edge[2]);
	unpack_rows(l, f, l->ny, width, g->edge[3]);
}

/* Planes first, as they lie in memory; then rows, those of the new planes too: the edges. */
void mg_fill_halo(struct mg_grids *g, struct mg_level *l, struct mg_field *f, int width)
{
	const int64_t first = -MG_HALO * f->row - 1; /* where a plane begins, from its origin */
	const struct npb_edges edges = {
	    .to_below = mg_row(f, 0, 0) + first,
	    .to_above = mg_row(f, l->nz - width, 0) + first,
	    .from_below = mg_row(f, -width, 0) + first,
	    .from_above = mg_row(f, l->nz, 0) + first,
	};

	npb_exchange(g->run, l->along_z, edges, width * (int)f->plane, MPI_DOUBLE);
	fill_along_y(g, l, f, width);
}

void mg_make_whole(struct mg_grids *g)
{
	const struct mg_level *fine = &g->level[g->shared];
	struct mg_level *l = &g->level[g->shared - 1];
	const int ny = fine->ny / 2, nz = fine->nz / 2, across = l->n / ny;
	const size_t row = (size_t)l->n * sizeof(double);
	double *at = g->part;

	for (int z = 0; z < nz; z++) {
		for (int y = 0; y < ny; y++, at += l->n)
			memcpy(at, mg_row(&l->r, fine->z0 / 2 + z, fine->y0 / 2 + y), row);
	}
	npb_allgather(g->run, g->part, g->all, nz * ny * l->n, MPI_DOUBLE);
	at = g->all;
	for (int q = 0; q < g->run->ranks; q++) {
		for (int z = q / across * nz; z < (q / across + 1) * nz; z++) {
			for (int y = q % across * ny; y < (q % across + 1) * ny; y++, at += l->n) {
				double *to = mg_row(&l->r, z, y);

				memcpy(to, at, row);
				to[-1] = to[l->n - 1];
				to[l->n] = to[0];
			}
		}
	}
}
