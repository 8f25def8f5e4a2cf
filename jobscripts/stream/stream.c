/*
 * Memory bandwidth as STREAM measures it (J. McCalpin, "Memory Bandwidth and Machine Balance in
 * Current High Performance Computers", IEEE TCCA Newsletter, December 1995), written here from that
 * description: four loops over three arrays of doubles, on all threads that OpenMP has,
 *   copy c = a,  scale b = 3 c,  add c = a + b,  triad a = b + 3 c
 * The best of the repetitions counts, the first one left out; bytes are those that the loops name
 * (2, 2, 3 and 3 arrays). At the end every element is compared with what the loops must leave.
 * Prints what STREAM prints, so that one reader reads both.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FACTOR	   3.0
#define MOST_ERROR 1e-13 /* mean relative error, as STREAM allows for doubles */
#define LINE	   "-------------------------------------------------------------\n"

static const char help[] =
    "usage: steelyard-stream ELEMENTS REPETITIONS\n"
    "\n"
    "Memory bandwidth as STREAM measures it, on all threads that OpenMP has.\n"
    "\n"
    "ELEMENTS are the doubles of each of three arrays; of 2 to 1000 REPETITIONS the best counts,\n"
    "the first one left out. Exit code 1: the arrays are wrong, 2: refused.\n";

enum { COPY, SCALE, ADD, TRIAD, LOOPS };

static const struct {
	const char *name;
	int arrays;
} loops[LOOPS] = {{"Copy:", 2}, {"Scale:", 2}, {"Add:", 3}, {"Triad:", 3}};

struct arrays {
	double *a, *b, *c;
	int64_t n;
};

struct times {
	double sum, least, most;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each thread touches first what it will work on, so that the memory is near it. */
static void fill(const struct arrays *s)
{
	double *restrict a = s->a, *restrict b = s->b, *restrict c = s->c;

#pragma omp parallel for
	for (int64_t i = 0; i < s->n; i++) {
		a[i] = 2; /* STREAM's 1, doubled before the first loop */
		b[i] = 2;
		c[i] = 0;
	}
}

static void copy(const double *restrict a, double *restrict c, int64_t n)
{
#pragma omp parallel for
	for (int64_t i = 0; i < n; i++)
		c[i] = a[i];
}

static void scale(double *restrict b, const double *restrict c, int64_t n)
{
#pragma omp parallel for
	for (int64_t i = 0; i < n; i++)
		b[i] = FACTOR * c[i];
}

static void add(const double *restrict a, const double *restrict b, double *restrict c, int64_t n)
{
#pragma omp parallel for
	for (int64_t i = 0; i < n; i++)
		c[i] = a[i] + b[i];
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c, int64_t n)
{
#pragma omp parallel for
	for (int64_t i = 0; i < n; i++)
		a[i] = b[i] + FACTOR * c[i];
}

static double timed(const struct arrays *s, int loop)
{
	const double begin = now();

	if (loop == COPY)
		copy(s->a, s->c, s->n);
	else if (loop == SCALE)
		scale(s->b, s->c, s->n);
	else if (loop == ADD)
		add(s->a, s->b, s->c, s->n);
	else
		triad(s->a, s->b, s->c, s->n);
	return now() - begin;
}

static void measure(const struct arrays *s, int repetitions, struct times *times)
{
	for (int k = 0; k < repetitions; k++) {
		for (int loop = 0; loop < LOOPS; loop++) {
			const double took = timed(s, loop);
			struct times *t = &times[loop];

			if (k == 0)
				continue;
			t->sum += took;
			t->least = took < t->least ? took : t->least;
			t->most = took > t->most ? took : t->most;
		}
	}
}

/* Mean relative error of an array that must be `wanted` everywhere; not a number stays one. */
static double error_of(const double *array, int64_t n, double wanted)
{
	double sum = 0;

#pragma omp parallel for reduction(+ : sum)
	for (int64_t i = 0; i < n; i++)
		sum += fabs(array[i] - wanted);
	return sum / (double)n / fabs(wanted);
}

/* Not a number, where one of them is none. */
static double largest(double a, double b, double c)
{
	const double most = isnan(a) || a >= b ? a : b;

	return isnan(most) || most >= c ? most : c;
}

static int right(const struct arrays *s, int repetitions)
{
	double a = 2, b = 2, c = 0, worst;

	for (int k = 0; k < repetitions; k++) {
		c = a;
		b = FACTOR * c;
		c = a + b;
		a = b + FACTOR * c;
	}
	worst = largest(error_of(s->a, s->n, a), error_of(s->b, s->n, b), error_of(s->c, s->n, c));
	if (worst < MOST_ERROR)
		printf("Solution Validates: avg error less than %e on all three arrays\n",
		       MOST_ERROR);
	else
		printf("Failed Validation: avg error %e, less than %e was expected\n", worst,
		       MOST_ERROR);
	return worst < MOST_ERROR;
}

static int threads(void)
{
	int count = 0;

#pragma omp parallel reduction(+ : count)
	count++;
	return count;
}

static void print(const struct arrays *s, int repetitions, const struct times *times)
{
	printf(LINE "Steelyard's STREAM\n" LINE);
	printf("Array size = %" PRId64 " (elements), Offset = 0 (elements)\n", s->n);
	printf("Each kernel will be executed %d times.\n", repetitions);
	printf("Number of Threads counted = %d\n" LINE, threads());
	printf("Function    Best Rate MB/s  Avg time     Min time     Max time\n");
	for (int loop = 0; loop < LOOPS; loop++)
		printf("%-12s%12.1f  %11.6f  %11.6f  %11.6f\n", loops[loop].name,
		       1e-6 * loops[loop].arrays * 8 * (double)s->n / times[loop].least,
		       times[loop].sum / (repetitions - 1), times[loop].least, times[loop].most);
	printf(LINE);
}

static int refused(const char *message)
{
	fprintf(stderr, "steelyard-stream: %s\n", message);
	return 2;
}

static int64_t count_of(const char *text)
{
	char *end;
	const long long value = strtoll(text, &end, 10);

	return *text != '\0' && *end == '\0' && value > 0 && value < 1LL << 40 ? value : 0;
}

int main(int argc, char **argv)
{
	struct arrays s = {0};
	struct times times[LOOPS];
	int repetitions, good;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	if (argc != 3 || !count_of(argv[1]) || count_of(argv[2]) < 2 || count_of(argv[2]) > 1000)
		return refused("expected ELEMENTS and REPETITIONS (2 to 1000)");
	s.n = count_of(argv[1]);
	repetitions = (int)count_of(argv[2]);
	s.a = aligned_alloc(64, ((size_t)s.n * 8 + 63) / 64 * 64);
	s.b = aligned_alloc(64, ((size_t)s.n * 8 + 63) / 64 * 64);
	s.c = aligned_alloc(64, ((size_t)s.n * 8 + 63) / 64 * 64);
	if (!s.a || !s.b || !s.c)
		return refused("no memory for three arrays of so many elements: give fewer");
	for (int loop = 0; loop < LOOPS; loop++)
		times[loop] = (struct times){0, DBL_MAX, 0};
	fill(&s);
	measure(&s, repetitions, times);
	print(&s, repetitions, times);
	good = right(&s, repetitions);
	printf(LINE);
	free(s.a);
	free(s.b);
	free(s.c);
	return good ? 0 : 1;
}
