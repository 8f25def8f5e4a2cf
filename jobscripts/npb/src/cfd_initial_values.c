/* What is set once: the forcing term and the initial values (the report, chapter 3). */
#include "cfd.h"

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
