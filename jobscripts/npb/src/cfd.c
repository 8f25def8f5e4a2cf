#include <math.h>

#include "cfd.h"
#include "npb_comm.h"
#include "npb.h"

/* The table of coefficients in chapter 3: the constant, then x, y, z, x^2, y^2, z^2 ... z^4. */
static const double polynomial[CFD_FIELDS][13] = {
    {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

/* U* at (x, y, z) of the unit cube, the polynomial of fourth degree. */
static void cfd_exact(double x, double y, double z, double u[CFD_FIELDS])
{
	const double place[3] = {x, y, z};

	for (int m = 0; m < CFD_FIELDS; m++) {
		u[m] = polynomial[m][0];
		for (int d = 0; d < 3; d++) {
			const double *c = polynomial[m] + 1 + d, t = place[d];

			u[m] += t * (c[0] + t * (c[3] + t * (c[6] + t * c[9])));
		}
	}
}

/*
 * Elements of one field. Before the own point of index 0 in a row, so much is left that the first
 * inner point begins a cache line; and behind, so that whole vectors fit in (cfd_whole).
 */
static size_t field_size(const int count[3], ptrdiff_t stride[3])
{
	/* Else the fields, many of which a loop reads, would share few places in the cache. */
	enum { PAGE = 512, STAGGER = 11 * CFD_LINE };
	const ptrdiff_t row = cfd_whole(CFD_LINE + count[0] + CFD_GHOSTS);

	stride[0] = 1;
	stride[1] = row;
	stride[2] = row * (count[1] + 2 * CFD_GHOSTS);
	return ((size_t)(stride[2] * (count[2] + 2 * CFD_GHOSTS)) + PAGE - 1) / PAGE * PAGE +
	       STAGGER;
}

static size_t fields(bool sound)
{
	return 3 * CFD_FIELDS + 6 + sound;
}

uint64_t cfd_box_bytes(const int count[3], bool sound)
{
	ptrdiff_t stride[3];

	return field_size(count, stride) * fields(sound) * sizeof(double);
}

static void share_out(struct cfd_box *box, double *field, size_t size, bool sound)
{
	double **const all[] = {box->u, box->forcing, box->rate};

	for (int a = 0; a < 3; a++) {
		for (int m = 0; m < CFD_FIELDS; m++, field += size)
			all[a][m] = field;
	}
	box->inverse = field;
	for (int d = 0; d < 3; d++)
		box->speed[d] = field += size;
	box->kinetic = field += size;
	box->pressure = field += size;
	box->sound = sound ? field + size : NULL;
}

static void set_axes(struct cfd_box *box)
{
	static const double diffusion[3] = {0.75, 0.75, 1};

	for (int d = 0; d < 3; d++) {
		const double h = 1.0 / (box->total[d] - 1);

		box->axis[d].convection = 1 / (2 * h);
		box->axis[d].curvature = 1 / (h * h);
		box->axis[d].diffusion = diffusion[d];
	}
	/* A quarter of the largest diffusion. */
	box->dissipation = npb_planted("coefficient") ? 0.25 * (1 + 1e-4) : 0.25;
}

void cfd_open_box(struct cfd_box *box, const int total[3], const int first[3], const int count[3],
		  bool sound)
{
	const size_t size = field_size(count, box->stride);
	const ptrdiff_t origin =
	    CFD_LINE - (first[0] == 0) + CFD_GHOSTS * (box->stride[1] + box->stride[2]);

	box->memory = npb_alloc(size * fields(sound), sizeof(double));
	share_out(box, (double *)box->memory + origin, size, sound);
	for (int d = 0; d < 3; d++) {
		box->total[d] = total[d];
		box->first[d] = first[d];
		box->count[d] = count[d];
		box->low[d] = first[d] == 0;
		box->high[d] = count[d] - (first[d] + count[d] == total[d]);
	}
	set_axes(box);
	for (size_t i = 0; i < size; i++)
		box->u[0][(ptrdiff_t)i - origin] = box->u[4][(ptrdiff_t)i - origin] = 1;
}

void cfd_close_box(struct cfd_box *box)
{
	npb_free(box->memory);
	*box = (struct cfd_box){0};
}

void cfd_sum_errors(const struct cfd_box *box, double sum[CFD_FIELDS])
{
	double exact[CFD_FIELDS], error;

	for (int k = 0; k < box->count[2]; k++) {
		for (int j = 0; j < box->count[1]; j++) {
			for (int i = 0; i < box->count[0]; i++) {
				cfd_exact(cfd_coordinate(box, 0, i), cfd_coordinate(box, 1, j),
					  cfd_coordinate(box, 2, k), exact);
				for (int m = 0; m < CFD_FIELDS; m++) {
					error = box->u[m][cfd_at(box, i, j, k)] - exact[m];
					sum[m] += error * error;
				}
			}
		}
	}
}

static double sum_squares(const struct cfd_box *box, const double *field)
{
	double sum = 0;

	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++) {
			for (int i = box->low[0]; i < box->high[0]; i++)
				sum += field[cfd_at(box, i, j, k)] * field[cfd_at(box, i, j, k)];
		}
	}
	return sum;
}

void cfd_sum_rates(const struct cfd_box *box, double sum[CFD_FIELDS])
{
	for (int m = 0; m < CFD_FIELDS; m++)
		sum[m] += sum_squares(box, box->rate[m]);
}

void cfd_norms(const int total[3], double sum[CFD_FIELDS])
{
	const double inner = (total[0] - 2.0) * (total[1] - 2.0) * (total[2] - 2.0);

	for (int m = 0; m < CFD_FIELDS; m++)
		sum[m] = sqrt(sum[m] / inner);
}

/* What is set once: the forcing term and the initial values (the report, chapter 3). */

static void put(const struct cfd_box *box, ptrdiff_t at, const double u[CFD_FIELDS])
{
	for (int m = 0; m < CFD_FIELDS; m++)
		box->u[m][at] = u[m];
}

/* First and last index with ghosts, where these lie on the grid. */
static int begin(const struct cfd_box *box, int d)
{
	return box->first[d] < CFD_GHOSTS ? -box->first[d] : -CFD_GHOSTS;
}

static int end(const struct cfd_box *box, int d)
{
	const int rest = box->total[d] - box->first[d];

	return rest < box->count[d] + CFD_GHOSTS ? rest : box->count[d] + CFD_GHOSTS;
}

static void set_exact(const struct cfd_box *box)
{
	double u[CFD_FIELDS];

	for (int k = begin(box, 2); k < end(box, 2); k++) {
		for (int j = begin(box, 1); j < end(box, 1); j++) {
			for (int i = begin(box, 0); i < end(box, 0); i++) {
				cfd_exact(cfd_coordinate(box, 0, i), cfd_coordinate(box, 1, j),
					  cfd_coordinate(box, 2, k), u);
				put(box, cfd_at(box, i, j, k), u);
			}
		}
	}
}

void cfd_set_forcing(struct cfd_box *box)
{
	set_exact(box);
	cfd_primitives(box);
	cfd_rate(box, -1);
	for (int k = box->low[2]; k < box->high[2]; k++) {
		for (int j = box->low[1]; j < box->high[1]; j++) {
			for (int i = box->low[0]; i < box->high[0]; i++) {
				const ptrdiff_t at = cfd_at(box, i, j, k);

				for (int m = 0; m < CFD_FIELDS; m++)
					box->forcing[m][at] = box->rate[m][at];
			}
		}
	}
}

/* Linear between the exact values of the two faces across direction d. */
static void between_faces(const double x[3], int d, double u[CFD_FIELDS])
{
	double at[3] = {x[0], x[1], x[2]}, near[CFD_FIELDS], far[CFD_FIELDS];

	at[d] = 0;
	cfd_exact(at[0], at[1], at[2], near);
	at[d] = 1;
	cfd_exact(at[0], at[1], at[2], far);
	for (int m = 0; m < CFD_FIELDS; m++)
		u[m] = (1 - x[d]) * near[m] + x[d] * far[m];
}

/* Transfinite interpolation: the three linear ones, less their products by two, and all three. */
static void interpolate(const double x[3], double u[CFD_FIELDS])
{
	double p[3][CFD_FIELDS];

	for (int d = 0; d < 3; d++)
		between_faces(x, d, p[d]);
	for (int m = 0; m < CFD_FIELDS; m++)
		u[m] = p[0][m] + p[1][m] + p[2][m] - p[0][m] * p[1][m] - p[0][m] * p[2][m] -
		       p[1][m] * p[2][m] + p[0][m] * p[1][m] * p[2][m];
}

static bool is_inner(const struct cfd_box *box, const int at[3])
{
	for (int d = 0; d < 3; d++) {
		if (at[d] < box->low[d] || at[d] >= box->high[d])
			return false;
	}
	return true;
}

void cfd_set_initial(struct cfd_box *box)
{
	int at[3];
	double u[CFD_FIELDS];

	for (at[2] = 0; at[2] < box->count[2]; at[2]++) {
		for (at[1] = 0; at[1] < box->count[1]; at[1]++) {
			for (at[0] = 0; at[0] < box->count[0]; at[0]++) {
				const double x[3] = {cfd_coordinate(box, 0, at[0]),
						     cfd_coordinate(box, 1, at[1]),
						     cfd_coordinate(box, 2, at[2])};

				if (is_inner(box, at))
					interpolate(x, u);
				else
					cfd_exact(x[0], x[1], x[2], u);
				put(box, cfd_at(box, at[0], at[1], at[2]), u);
			}
		}
	}
}
