/*
 * The conjugate gradients of CG, with as many messages as NASA's program. The matrix is cut both
 * ways: C columns of ranks, a power of two, by C or C / 2 rows of them, column the fastest. Of a
 * vector each rank holds the elements of its columns.
 *
 * Communicated, per step, always two ranks with each other: the parts of A p are summed along a
 * row of ranks in log2 C exchanges; what a rank then has of the sum it exchanges with the rank
 * whose columns those rows are (with itself on the diagonal); and p . q and the new r . r are
 * summed by log2 C exchanges of one number each.
 */
#include <string.h>

#include "cg.h"
#include "npb.h"

/* Where piece i of `columns` pieces of a vector begins. */
static int piece(const struct cg_solver *s, int n, int i)
{
	return (int)((int64_t)n * i / s->columns);
}

void cg_open_part(struct cg_solver *s, const struct cg_problem *problem)
{
	const int n = problem->n;
	int each;

	for (s->columns = 1; s->columns * s->columns < s->run->ranks; s->columns *= 2)
		;
	s->rows = s->run->ranks / s->columns;
	s->row = s->run->rank / s->columns;
	s->column = s->run->rank % s->columns;
	each = s->columns / s->rows; /* pieces of a row of ranks: 1 or 2 */
	s->a.first = piece(s, n, s->row * each);
	s->a.rows = piece(s, n, (s->row + 1) * each) - s->a.first;
	s->a.first_column = piece(s, n, s->column);
	s->n = s->a.columns = piece(s, n, s->column + 1) - s->a.first_column;
	s->w = npb_alloc((size_t)s->a.rows, sizeof(double));
	s->received = npb_alloc((size_t)s->a.rows, sizeof(double));
	s->q = npb_alloc((size_t)s->n, sizeof(double));
}

static int in_my_row(const struct cg_solver *s, int column)
{
	return s->row * s->columns + column;
}

void cg_sum(struct cg_solver *s, double *sums, int count)
{
	double theirs[2];

	for (int distance = s->columns / 2; distance > 0; distance /= 2) {
		npb_swap(s->run, in_my_row(s, s->column ^ distance),
			 (struct npb_message){sums, count}, (struct npb_message){theirs, count});
		for (int i = 0; i < count; i++)
			sums[i] += theirs[i];
	}
}

static void add(double *restrict to, const double *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += from[i];
}

/* With two pieces to a row of ranks, the even ranks go on with the first, the odd ones with the
 * second: the neighbour's is sent to it. */
static struct npb_message share_pieces(struct cg_solver *s)
{
	const int half = piece(s, cg_problems[s->run->class].n, 2 * s->row + 1) - s->a.first;
	struct npb_message parts[2] = {{s->w, half}, {s->w + half, s->a.rows - half}};
	struct npb_message mine = parts[s->column % 2];

	npb_swap(s->run, in_my_row(s, s->column ^ 1), parts[1 - s->column % 2],
		 (struct npb_message){s->received, mine.count});
	add(mine.data, s->received, mine.count);
	return mine;
}

/* to = A from, for the own columns. */
static void multiply(struct cg_solver *s, const double *from, double *to)
{
	struct npb_message sum = {s->w, s->a.rows};
	int distance = 1, partner = s->column * s->columns + s->row;

	cg_multiply(&s->a, from, s->w);
	if (s->rows < s->columns) {
		sum = share_pieces(s);
		distance = 2;
		partner = s->column / 2 * s->columns + 2 * s->row + s->column % 2;
	}
	for (; distance < s->columns; distance *= 2) {
		npb_swap(s->run, in_my_row(s, s->column ^ distance), sum,
			 (struct npb_message){s->received, sum.count});
		add(sum.data, s->received, sum.count);
	}
	if (s->columns == 1)
		memcpy(to, sum.data, (size_t)s->n * sizeof(double));
	else
		npb_swap(s->run, partner, sum, (struct npb_message){to, s->n});
}

static double sum_dot(struct cg_solver *s, const double *a, const double *b)
{
	double sum = cg_dot(a, b, s->n);

	cg_sum(s, &sum, 1);
	return sum;
}

double cg_solve(struct cg_solver *s)
{
	const size_t size = (size_t)s->n * sizeof(double);
	double rho, before, alpha;

	memset(s->z, 0, size);
	memcpy(s->p, s->x, size);
	memcpy(s->r, s->x, size);
	rho = sum_dot(s, s->r, s->r);
	for (int step = 1; step <= npb_steps(CG_STEPS); step++) {
		multiply(s, s->p, s->q);
		alpha = rho / sum_dot(s, s->p, s->q);
		cg_subtract(alpha, s->q, s->r, s->n);
		before = rho;
		rho = sum_dot(s, s->r, s->r);
		cg_advance(alpha, rho / before, s->r, s->z, s->p, s->n);
	}
	multiply(s, s->z, s->q);
	for (int i = 0; i < s->n; i++)
		s->r[i] = s->x[i] - s->q[i];
	return sum_dot(s, s->r, s->r);
}
