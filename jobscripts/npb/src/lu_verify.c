/*
 * What decides whether a run of LU is right: norms of the residual and of the error, and the
 * surface integral of the pressure (the report, sections 3.4 and 3.6).
 */
#include <stdio.h>

#include "lu.h"
#include "npb_comm.h"
#include "npb.h"

#define LIMIT 1e-8

/* Sizes and official values of NPB 3. */
const struct lu_problem lu_problems[NPB_CLASSES] = {
    [NPB_S] = {12,
	       50,
	       0.5,
	       {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
		1.5029584435994323e-03, 3.4264073155896461e-02},
	       {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
		5.8474222595157350e-05, 1.3103347914111294e-03},
	       7.8418928865937083},
    [NPB_W] = {33,
	       300,
	       1.5e-3,
	       {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01,
		0.2826799444189e+02},
	       {0.4867877144216, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01,
		0.1084277417792e+01},
	       0.1161399311023e+02},
    [NPB_A] = {64,
	       250,
	       2,
	       {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
		1.7845301160418537e+02, 1.8384760349464247e+03},
	       {2.9964085685471943e+01, 2.8194576365003349, 7.3473412698774742, 6.7139225687777051,
		7.0715315688392578e+01},
	       2.6030925604886277e+01},
    [NPB_B] = {102,
	       250,
	       2,
	       {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
		7.7812774739425265e+02, 7.3087969592545314e+03},
	       {1.1401176380212709e+02, 8.1098963655421574, 2.8480597317698308e+01,
		2.5905394567832939e+01, 2.6054907504857413e+02},
	       4.7887162703308227e+01},
    [NPB_C] = {162,
	       250,
	       2,
	       {1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03,
		2.19194343857831427e+03, 1.78078057261061185e+04},
	       {2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01,
		4.82262643154045421e+01, 4.55902910043250358e+02},
	       6.66404553572181300e+01},
    [NPB_D] = {408,
	       300,
	       1,
	       {0.4868417937025e+05, 0.4696371050071e+04, 0.1218114549776e+05, 0.1033801493461e+05,
		0.7142398413817e+05},
	       {0.3752393004482e+03, 0.3084128893659e+02, 0.9434276905469e+02, 0.8230686681928e+02,
		0.7002620636210e+03},
	       0.8334101392503e+02},
};

static double pressure(const struct cfd_box *box, const int at[3])
{
	const ptrdiff_t p = cfd_at(box, at[0], at[1], at[2]);
	const double x = box->u[1][p], y = box->u[2][p], z = box->u[3][p];

	return CFD_C2 * (box->u[4][p] - 0.5 * (x * x + y * y + z * z) / box->u[0][p]);
}

/* The trapezoidal rule over first ... last of the grid: the weight of a local index. */
static double weight(const struct cfd_box *box, int d, int index, const int first[3],
		     const int last[3])
{
	const int place = box->first[d] + index;

	if (place < first[d] || place > last[d])
		return 0;
	return place == first[d] || place == last[d] ? 0.5 : 1;
}

/* This rank's share over the face where direction d has the given place of the grid. */
static double face(const struct cfd_box *box, int d, int place, const int first[3],
		   const int last[3])
{
	const int e = (d + 1) % 3, f = (d + 2) % 3;
	double sum = 0, w;
	int at[3];

	at[d] = place - box->first[d];
	if (at[d] < 0 || at[d] >= box->count[d])
		return 0;
	for (at[e] = 0; at[e] < box->count[e]; at[e]++) {
		for (at[f] = 0; at[f] < box->count[f]; at[f]++) {
			w = weight(box, e, at[e], first, last) * weight(box, f, at[f], first, last);
			if (w != 0)
				sum += w * pressure(box, at);
		}
	}
	return sum;
}

/* The surface integral: pressure over the six faces of a box inside the grid, by the mean of two.
 */
static double surface_integral(struct npb_run *run, const struct cfd_box *box)
{
	const int n = box->total[0], first[3] = {1, 1, 2}, last[3] = {n - 2, n - 3, n - 2};
	const double h = 1.0 / (n - 1);
	double sum = 0;

	for (int d = 0; d < 3; d++)
		sum += face(box, d, first[d], first, last) + face(box, d, last[d], first, last);
	npb_allreduce(run, &sum, 1, MPI_DOUBLE, MPI_SUM);
	return sum * h * h;
}

static void check_norms(struct npb_run *run, const struct cfd_box *box, const char *what,
			double sum[CFD_FIELDS], const double expected[CFD_FIELDS])
{
	char name[32];

	npb_allreduce(run, sum, CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
	cfd_norms(box->total, sum);
	for (int m = 0; m < CFD_FIELDS; m++) {
		snprintf(name, sizeof(name), "%s %d", what, m + 1);
		npb_check(run, name, sum[m], expected[m], LIMIT);
	}
}

void lu_verify(struct npb_run *run, const struct cfd_box *box)
{
	const struct lu_problem *problem = &lu_problems[run->class];
	double rates[CFD_FIELDS] = {0}, errors[CFD_FIELDS] = {0};

	cfd_sum_rates(box, rates);
	check_norms(run, box, "residual", rates, problem->residual);
	cfd_sum_errors(box, errors);
	check_norms(run, box, "error", errors, problem->error);
	npb_check(run, "surface integral", surface_integral(run, box), problem->integral, LIMIT);
}
