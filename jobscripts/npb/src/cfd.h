/*
 * The simulated CFD application of the report, chapter 3, which LU, SP and BT solve in three ways:
 * the Navier-Stokes equations on the unit cube, with a forcing term that makes a polynomial the
 * steady solution.
 *
 *   dU/dt = L(U) - L(U*),  U = (density, three momenta, total energy),  U* the polynomial
 *
 * L: convection and viscosity by central differences of second order, diffusion, and dissipation
 * of fourth order. U = U* on the boundary.
 *
 * All of it works on a box, a part of the grid with two layers of ghost points around it. How the
 * grid is cut into boxes, and who fills the ghosts, is the business of the programs. Each
 * component is a field of its own, so that every loop along the first direction becomes vectors.
 */
#ifndef CFD_H
#define CFD_H

#include "npb.h"

enum {
	CFD_FIELDS = 5, /* components of U */
	CFD_GHOSTS = 2, /* layers */
	CFD_LINE = 8	/* doubles of a cache line and of the widest vector */
};

/* The constants of chapter 3: ratio of specific heats, and what follows from it and others. */
#define CFD_C1	   1.4
#define CFD_C2	   0.4	       /* c1 - 1 */
#define CFD_C34	   0.1	       /* c3 c4, of the viscous terms */
#define CFD_C15	   1.96	       /* c1 c5, of heat conduction */
#define CFD_NORMAL (4.0 / 3.0) /* viscosity along the flow, by that across it */

/* Before a loop along a row: what it writes, it reads nowhere else than at the same point. */
#ifdef __clang__
#define CFD_ROW _Pragma("clang loop vectorize(assume_safety)")
#else
#define CFD_ROW _Pragma("GCC ivdep")
#endif

/* One direction of the grid, of spacing h. */
struct cfd_axis {
	double convection; /* 1 / (2 h) */
	double curvature;  /* 1 / h^2 */
	double diffusion;  /* the report's d_x, d_y, d_z; the same for all components */
};

struct cfd_box {
	int total[3]; /* points of the whole grid, boundary included */
	int first[3]; /* place of this box's first own point in it */
	int count[3]; /* own points */
	int low[3];   /* local indices low ... high - 1: own points that are not on the boundary */
	int high[3];
	ptrdiff_t stride[3]; /* elements to the next point; stride[0] is 1 */
	struct cfd_axis axis[3];
	double dissipation; /* epsilon of the fourth-order term */

	/* All of them begin at the own point (0, 0, 0); ghosts have negative indices. */
	double *u[CFD_FIELDS];
	double *forcing[CFD_FIELDS];
	double *rate[CFD_FIELDS]; /* dU/dt, then what a program makes of it */
	/* Of u, by cfd_primitives; valid with one layer of ghosts. */
	double *inverse;  /* 1 / density */
	double *speed[3]; /* velocity */
	double *kinetic;  /* half the velocity's square */
	double *pressure;
	double *sound; /* speed of sound; NULL unless asked for */
	void *memory;
};

/* Element of a field; the indices are local, from -CFD_GHOSTS to count + CFD_GHOSTS - 1. */
NPB_INLINE ptrdiff_t cfd_at(const struct cfd_box *box, int i, int j, int k)
{
	return i + j * box->stride[1] + k * box->stride[2];
}

/* Coordinate, 0 to 1, of a local index along direction d. */
NPB_INLINE double cfd_coordinate(const struct cfd_box *box, int d, int index)
{
	return (double)(box->first[d] + index) / (box->total[d] - 1);
}

/*
 * Loops along rows do whole vectors, as rests are slow: what they write behind a row's inner points
 * is no point that anybody reads. (u is never written so.)
 */
NPB_INLINE int cfd_whole(int n)
{
	return (n + CFD_LINE - 1) & ~(CFD_LINE - 1);
}

/* Memory and constants; u is (1, 0, 0, 0, 1) everywhere, so that no ghost divides by zero. */
void cfd_open_box(struct cfd_box *box, const int total[3], const int first[3], const int count[3],
		  bool sound);
void cfd_close_box(struct cfd_box *box);
/* Bytes that cfd_open_box takes. */
uint64_t cfd_box_bytes(const int count[3], bool sound);

/* forcing = -L(U*); u and the primitives are used up for it. */
void cfd_set_forcing(struct cfd_box *box);
/* The initial values: U* on the boundary, interpolated between faces inside. */
void cfd_set_initial(struct cfd_box *box);

/* Velocity, pressure ... of u, also in the ghosts that L needs. */
void cfd_primitives(const struct cfd_box *box);
/* rate = scale (forcing + L(u)) on the row (j, k), from low[0] to high[0]. Needs primitives. */
void cfd_rate_row(const struct cfd_box *box, int j, int k, double scale);
/* The sum of rate^2 over the row, all components. */
double cfd_row_squares(const struct cfd_box *box, int j, int k);
/* Both on all rows. */
double cfd_rate(const struct cfd_box *box, double scale);
/* u += rate inside */
void cfd_add_rate(const struct cfd_box *box);

/* Sums over the box, added to `sum`: (u - U*)^2 over all own points, rate^2 over the inner ones. */
void cfd_sum_errors(const struct cfd_box *box, double sum[CFD_FIELDS]);
void cfd_sum_rates(const struct cfd_box *box, double sum[CFD_FIELDS]);
/* Sums over all boxes to root mean squares over the inner points of the grid. */
void cfd_norms(const int total[3], double sum[CFD_FIELDS]);

#endif
