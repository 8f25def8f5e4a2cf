/* What the files of CG share: the problem and the matrix. */
#ifndef CG_H
#define CG_H

#include "npb_comm.h"

struct cg_problem {
	int n;	    /* order of the matrix */
	int nonzer; /* nonzeros of each vector x of the sum, its own element not counted */
	int iterations;
	double shift; /* lambda */
	double zeta;  /* official, limit 1e-10 */
};

extern const struct cg_problem cg_problems[NPB_CLASSES];

/*
 * The rows first ... first + rows - 1 of the matrix, compressed by rows within panels of 2^16
 * columns: a column then takes two bytes, and the part of the vector that a panel is multiplied
 * with stays in the cache.
 */
enum { CG_PANEL_BITS = 16 };

struct cg_matrix {
	int first, rows, panels;
	int64_t *begin;	  /* of part [panel * rows + row], and one more */
	uint16_t *column; /* less the panel's first one; ascending in a part */
	double *value;
};

/* A of the report, less shift on the diagonal; each rank makes its own rows. */
void cg_make_matrix(struct cg_matrix *a, const struct cg_problem *problem, int first, int rows);
void cg_free_matrix(struct cg_matrix *a);
/* y = A x for the own rows; x has all elements. */
void cg_multiply(const struct cg_matrix *restrict a, const double *restrict x, double *restrict y);

#endif
