/*
 * The matrix of CG (section 2.2.3 of the report): A = sum over i of w_i x_i x_i^T, plus 0.1 on the
 * diagonal, with weights w_i from 1 down to 0.1 in a geometric sequence. Each x_i has `nonzer`
 * random elements at random places, and 1/2 as its element i.
 *
 * All ranks make all vectors, since the random sequence cannot be entered in the middle (places
 * are drawn until they fit); of the sum each keeps its own part. It is summed column by column, so
 * that every row gets its elements in order and those that meet stand beside each other.
 */
#include <math.h>
#include <string.h>

#include "cg.h"
#include "npb.h"

#define SEED  UINT64_C(314159265)
#define RCOND 0.1

/* The vectors x_i, and the same by element: who has a nonzero there. */
struct vectors {
	int n, room; /* at most `room` nonzeros each */
	int *count;
	int *place;	 /* [i * room + k] */
	double *element; /* likewise */
	int64_t *begin;	 /* of the list of element c, and one more */
	int *who;	 /* vectors with a nonzero at c */
	double *what;	 /* that nonzero */
};

static bool has_place(const int *place, int count, int wanted)
{
	for (int k = 0; k < count; k++) {
		if (place[k] == wanted)
			return true;
	}
	return false;
}

/* Value and place are drawn in turns; places beyond n and places taken are drawn again. */
static void draw_vector(struct vectors *v, int i, uint64_t *seed, double power_of_two)
{
	int *place = v->place + (int64_t)i * v->room;
	double *element = v->element + (int64_t)i * v->room;
	int count = 0, k;

	while (count < v->room - 1) {
		*seed = npb_step(NPB_MULTIPLIER, *seed);
		element[count] = npb_uniform(*seed);
		*seed = npb_step(NPB_MULTIPLIER, *seed);
		place[count] = (int)(power_of_two * npb_uniform(*seed));
		if (place[count] < v->n && !has_place(place, count, place[count]))
			count++;
	}
	for (k = 0; k < count && place[k] != i; k++)
		;
	place[k] = i;
	element[k] = 0.5;
	v->count[i] = k == count ? count + 1 : count;
}

static void draw_vectors(struct vectors *v)
{
	uint64_t seed = npb_step(NPB_MULTIPLIER, SEED); /* the first number is not used */
	double power_of_two = 1;

	while (power_of_two < v->n)
		power_of_two *= 2;
	for (int i = 0; i < v->n; i++)
		draw_vector(v, i, &seed, power_of_two);
}

static void list_by_element(struct vectors *v)
{
	for (int i = 0; i < v->n; i++) {
		for (int k = 0; k < v->count[i]; k++)
			v->begin[v->place[(int64_t)i * v->room + k] + 1]++;
	}
	for (int c = 0; c < v->n; c++)
		v->begin[c + 1] += v->begin[c];
	for (int i = v->n - 1; i >= 0; i--) { /* from the end of each list to its begin */
		for (int k = 0; k < v->count[i]; k++) {
			const int64_t from = (int64_t)i * v->room + k;
			const int64_t to = --v->begin[v->place[from] + 1];

			v->who[to] = i;
			v->what[to] = v->element[from];
		}
	}
	/* begin[c + 1] is now where the list of c begins */
	for (int c = 0; c < v->n; c++)
		v->begin[c] = v->begin[c + 1];
	v->begin[v->n] = 0;
	for (int i = 0; i < v->n; i++)
		v->begin[v->n] += v->count[i];
}

static void make_vectors(struct vectors *v, const struct cg_problem *problem)
{
	const size_t n = (size_t)problem->n, room = (size_t)problem->nonzer + 1;

	v->n = problem->n;
	v->room = problem->nonzer + 1;
	v->count = npb_alloc(n, sizeof(int));
	v->place = npb_alloc(n * room, sizeof(int));
	v->element = npb_alloc(n * room, sizeof(double));
	v->begin = npb_alloc(n + 1, sizeof(int64_t));
	v->who = npb_alloc(n * room, sizeof(int));
	v->what = npb_alloc(n * room, sizeof(double));
	draw_vectors(v);
	list_by_element(v);
}

static void free_vectors(struct vectors *v)
{
	npb_free(v->count);
	npb_free(v->place);
	npb_free(v->element);
	npb_free(v->begin);
	npb_free(v->who);
	npb_free(v->what);
}

static void reserve(struct cg_matrix *a, int row, int column)
{
	if (column >= 0 && column < a->columns)
		a->begin[(int64_t)(column >> CG_PANEL_BITS) * a->rows + row + 1]++;
}

/* Where each part begins when nothing meets: a row has the nonzeros of all its vectors. */
static void reserve_parts(struct cg_matrix *a, const struct vectors *v)
{
	const int64_t parts = (int64_t)a->panels * a->rows;

	a->begin = npb_alloc((size_t)parts + 1, sizeof(*a->begin));
	for (int r = 0; r < a->rows; r++) {
		const int row = a->first + r;

		for (int64_t l = v->begin[row]; l < v->begin[row + 1]; l++) {
			const int *place = v->place + (int64_t)v->who[l] * v->room;

			for (int k = 0; k < v->count[v->who[l]]; k++)
				reserve(a, r, place[k] - a->first_column);
		}
	}
	for (int64_t part = 0; part < parts; part++)
		a->begin[part + 1] += a->begin[part];
	a->column = npb_alloc((size_t)a->begin[parts], sizeof(*a->column));
	a->value = npb_alloc((size_t)a->begin[parts], sizeof(*a->value));
}

/* Adds factor x_i to a column of this part; `end` is where each part has got to. */
static void add_vector(struct cg_matrix *a, int64_t *end, const struct vectors *v, int i,
		       int column, double factor)
{
	const int64_t panel = (int64_t)(column >> CG_PANEL_BITS) * a->rows;
	const uint16_t inside = (uint16_t)(column & ((1 << CG_PANEL_BITS) - 1));

	for (int k = 0; k < v->count[i]; k++) {
		const int64_t from = (int64_t)i * v->room + k;
		const int row = v->place[from] - a->first;
		int64_t part;

		if (row < 0 || row >= a->rows)
			continue;
		part = panel + row;
		if (end[part] == a->begin[part] || a->column[end[part] - 1] != inside) {
			a->column[end[part]] = inside;
			a->value[end[part]++] = 0;
		}
		a->value[end[part] - 1] += factor * v->element[from];
	}
}

/* Moves the parts together. */
static void close_gaps(struct cg_matrix *a, const int64_t *end)
{
	const int64_t parts = (int64_t)a->panels * a->rows;
	int64_t to = 0, from;

	for (int64_t part = 0; part < parts; part++) {
		from = a->begin[part];
		a->begin[part] = to;
		for (; from < end[part]; from++, to++) {
			a->column[to] = a->column[from];
			a->value[to] = a->value[from];
		}
	}
	a->begin[parts] = to;
}

static void sum_parts(struct cg_matrix *a, const struct vectors *v)
{
	const size_t parts = (size_t)a->panels * (size_t)a->rows;
	const double ratio = pow(RCOND, 1.0 / v->n);
	int64_t *end = npb_alloc(parts, sizeof(*end));
	double *weight = npb_alloc((size_t)v->n, sizeof(*weight));

	weight[0] = 1;
	for (int i = 1; i < v->n; i++)
		weight[i] = weight[i - 1] * ratio;
	memcpy(end, a->begin, parts * sizeof(*end));
	for (int c = 0; c < a->columns; c++) {
		const int64_t *list = v->begin + a->first_column + c;

		for (int64_t l = list[0]; l < list[1]; l++)
			add_vector(a, end, v, v->who[l], c, weight[v->who[l]] * v->what[l]);
	}
	close_gaps(a, end);
	npb_free(weight);
	npb_free(end);
}

static void add_to_diagonal(struct cg_matrix *a, double diagonal)
{
	for (int r = 0; r < a->rows; r++) {
		const int column = a->first + r - a->first_column;
		const int64_t part = (int64_t)(column >> CG_PANEL_BITS) * a->rows + r;

		if (column < 0 || column >= a->columns)
			continue;
		for (int64_t k = a->begin[part]; k < a->begin[part + 1]; k++)
			a->value[k] += a->column[k] == (uint16_t)column ? diagonal : 0;
	}
}

void cg_make_matrix(struct cg_matrix *a, const struct cg_problem *problem)
{
	double diagonal = RCOND - problem->shift;
	struct vectors v;

	if (npb_planted("coefficient"))
		diagonal *= 1 + 1e-6;
	a->panels = ((a->columns - 1) >> CG_PANEL_BITS) + 1;
	make_vectors(&v, problem);
	reserve_parts(a, &v);
	sum_parts(a, &v);
	free_vectors(&v);
	add_to_diagonal(a, diagonal);
}

void cg_free_matrix(struct cg_matrix *a)
{
	npb_free(a->begin);
	npb_free(a->column);
	npb_free(a->value);
}

/* Four sums side by side: an addition takes four times as long as it keeps the adder busy. */
NPB_INLINE double multiply_part(const double *restrict value, const uint16_t *restrict column,
				int64_t count, const double *restrict x)
{
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
	int64_t k = 0;

	for (; k + 8 <= count; k += 8) {
		/* Far enough ahead for memory, across pages, where the processor itself stops. */
		__builtin_prefetch(value + k + 192);
		s0 += value[k + 4] * x[column[k + 4]];
		s1 += value[k + 5] * x[column[k + 5]];
		s2 += value[k + 6] * x[column[k + 6]];
		s3 += value[k + 7] * x[column[k + 7]];
		s0 += value[k] * x[column[k]];
		s1 += value[k + 1] * x[column[k + 1]];
		s2 += value[k + 2] * x[column[k + 2]];
		s3 += value[k + 3] * x[column[k + 3]];
	}
	for (; k < count; k++)
		s0 += value[k] * x[column[k]];
	return (s0 + s1) + (s2 + s3);
}

void cg_multiply(const struct cg_matrix *restrict a, const double *restrict x, double *restrict y)
{
	const int64_t *begin = a->begin;

	npb_worked((int64_t)a->rows * a->columns);
	memset(y, 0, (size_t)a->rows * sizeof(*y));
	for (int p = 0; p < a->panels; p++, begin += a->rows) {
		for (int r = 0; r < a->rows; r++)
			y[r] += multiply_part(a->value + begin[r], a->column + begin[r],
					      begin[r + 1] - begin[r],
					      x + ((int64_t)p << CG_PANEL_BITS));
	}
}
