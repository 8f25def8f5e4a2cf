/* Options, the order of tests and sizes, and the document that parse.py reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpitest.h"

enum { FULL_COUNT_BYTES = 8192, LEAST_COUNT = 10 };

static const char help[] =
    "usage: mpirun -np N steelyard-mpitest [OPTIONS]\n"
    "\n"
    "Latency, bandwidth and collectives of MPI by size of message, as one JSON document.\n"
    "\n"
    "  --test NAME       all, or one of latency, bandwidth, bi_bandwidth, alltoall, reduce,\n"
    "                    allreduce, barrier [all]\n"
    "  --tags TEXT       told in the document\n"
    "  --smallest BYTES  the first size [8]\n"
    "  --largest BYTES   the last one [1048576]\n"
    "  --iterations N    of each size [1000]\n"
    "  --warm-up N       before them [10]\n"
    "  --repetitions N   of each test [5]\n";

static int refused(const struct world *w, const char *message, const char *word)
{
	if (w->rank == 0)
		fprintf(stderr, "steelyard-mpitest: %s '%s'\n", message, word);
	return MPITEST_REFUSED;
}

static bool is_known(const char *name)
{
	for (int i = 0; i < mpitest_count; i++) {
		if (strcmp(mpitest_tests[i].name, name) == 0)
			return true;
	}
	return strcmp(name, "all") == 0;
}

static long *number_of(struct options *o, const char *name)
{
	const struct {
		const char *name;
		long *value;
	} known[] = {{"--smallest", &o->smallest},
		     {"--largest", &o->largest},
		     {"--iterations", &o->iterations},
		     {"--warm-up", &o->warm_up},
		     {"--repetitions", &o->repetitions}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, name) == 0)
			return known[i].value;
	}
	return NULL;
}

static int read_options(const struct world *w, char **argv, struct options *o)
{
	*o = (struct options){"all", NULL, 8, 1 << 20, 1000, 10, 5};
	for (int i = 1; argv[i]; i += 2) {
		long *number = number_of(o, argv[i]);
		const char *value = argv[i + 1];
		char *end = NULL;

		if (!value)
			return refused(w, "a value is missing after", argv[i]);
		if (number) {
			*number = strtol(value, &end, 10);
			if (*value == '\0' || *end != '\0' || *number < 0 || *number > 1 << 30)
				return refused(w, "expected a number, found", value);
		} else if (strcmp(argv[i], "--test") == 0) {
			o->test = value;
		} else if (strcmp(argv[i], "--tags") == 0) {
			o->tags = value;
		} else {
			return refused(w, "unknown argument", argv[i]);
		}
	}
	if (!is_known(o->test))
		return refused(w, "unknown test", o->test);
	if (o->iterations < 1 || o->repetitions < 1 || o->smallest > o->largest)
		return refused(w, "expected at least one iteration and repetition, and smallest <=",
			       "largest");
	return 0;
}

/* Names of the nodes, by rank, on rank 0. */
static char *gather_names(const struct world *w)
{
	char mine[MPI_MAX_PROCESSOR_NAME] = "", *all = NULL;
	int length;

	if (w->rank == 0)
		all = calloc((size_t)w->ranks, MPI_MAX_PROCESSOR_NAME);
	MPI_Get_processor_name(mine, &length);
	MPI_Gather(mine, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0,
		   MPI_COMM_WORLD);
	return all;
}

static const char *name_of(const char *names, int rank)
{
	return names + (size_t)rank * MPI_MAX_PROCESSOR_NAME;
}

/* The pair is rank 0 and the first rank on another node; on one node, the middle one. */
static void choose_pair(struct world *w, const char *names)
{
	w->first = 0;
	w->second = w->ranks / 2;
	for (int rank = w->ranks - 1; w->rank == 0 && rank > 0; rank--) {
		if (strcmp(name_of(names, rank), names) != 0)
			w->second = rank;
	}
	MPI_Bcast(&w->second, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* Text of others in JSON: what would have to be escaped is left out. */
static void print_text(const char *text)
{
	putchar('"');
	for (; *text && *text != '\n'; text++) {
		if (*text >= ' ' && *text != '"' && *text != '\\')
			putchar(*text);
	}
	putchar('"');
}

static void print_head(const struct world *w, const char *names)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(version, &length);
	printf("{\"format\": \"steelyard-mpi\", \"version\": 1, \"program\": \"c\", \"mpi\": ");
	print_text(version);
	printf(", \"nodes\": [");
	for (int rank = 0; rank < w->ranks; rank++) {
		printf("%s", rank ? ", " : "");
		print_text(name_of(names, rank));
	}
	printf("], \"pair\": [%d, %d], \"tests\": [", w->first, w->second);
}

static long count_of(long size, long iterations)
{
	const long fewer =
	    size > FULL_COUNT_BYTES ? iterations * FULL_COUNT_BYTES / size : iterations;

	return fewer >= LEAST_COUNT ? fewer : iterations < LEAST_COUNT ? iterations : LEAST_COUNT;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median; leaves them sorted. */
static double median_of(double *seconds, long count)
{
	qsort(seconds, (size_t)count, sizeof(*seconds), by_size);
	return (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
}

/* Latency of the smallest message, bandwidth of the largest, as client.py says them. */
static void write_tag(const struct options *o, const struct test *test, long size, double seconds)
{
	FILE *file = o->tags ? fopen(o->tags, "a") : NULL;

	if (file && strcmp(test->name, "latency") == 0 && size == o->smallest)
		fprintf(file, "mpi.latency_s=%.9f\n", seconds);
	if (file && strcmp(test->name, "bandwidth") == 0 && size == o->largest)
		fprintf(file, "mpi.bandwidth_bytes_per_s=%.0f\n", (double)size / seconds);
	if (file)
		fclose(file);
}

static void print_row(const struct test *test, long size, const struct found *last,
		      const double *seconds, long repetitions)
{
	static bool others;

	printf("%s{\"test\": \"%s\", \"bytes\": %ld, \"operations\": %ld, \"late\": %ld, "
	       "\"seconds\": [",
	       others ? ", " : "", test->name, size, last->operations, last->late);
	for (long i = 0; i < repetitions; i++)
		printf("%s%.12g", i ? ", " : "", seconds[i]);
	printf("]}");
	others = true;
}

static struct found repetition(const struct test *test, struct task *task, long count)
{
	struct found found = test->windows ? mpitest_in_windows(test, task, count)
					   : mpitest_together(test, task, count);

	if (found.seconds < 0) {
		if (task->world->rank == 0)
			fprintf(stderr,
				"steelyard-mpitest: %s: in no window all ranks began in time: the "
				"node is too busy\n",
				test->name);
		MPI_Abort(MPI_COMM_WORLD, MPITEST_PROGRAM_ERROR);
	}
	if (strcmp(test->name, "latency") == 0)
		found.seconds /= 2;
	return found;
}

/* A test with one size of message. */
static void measure(const struct test *test, const struct world *w, const struct options *o,
		    long size)
{
	struct task task = {.world = w, .size = (size_t)size};
	double *seconds = calloc((size_t)o->repetitions, sizeof(*seconds));
	struct found found = {0, 0, 0};

	if (!seconds)
		MPI_Abort(MPI_COMM_WORLD, MPITEST_PROGRAM_ERROR);
	mpitest_prepare(test, &task);
	if (mpitest_takes_part(test, w) && o->warm_up > 0)
		test->run(&task, o->warm_up);
	for (long i = 0; i < o->repetitions; i++) {
		found = repetition(test, &task, count_of(size, o->iterations));
		seconds[i] = found.seconds;
	}
	if (mpitest_takes_part(test, w) && !test->right(&task)) {
		fprintf(stderr,
			"steelyard-mpitest: rank %d: %s: a message of %ld bytes did not arrive as "
			"it was sent\n",
			w->rank, test->name, size);
		MPI_Abort(MPI_COMM_WORLD, MPITEST_PROGRAM_ERROR);
	}
	if (w->rank == 0) {
		print_row(test, size, &found, seconds, o->repetitions);
		write_tag(o, test, size, median_of(seconds, o->repetitions));
	}
	mpitest_free(&task);
	free(seconds);
}

/* Doubled from the smallest on, and the largest; a barrier has none. */
static void measure_sizes(const struct test *test, const struct world *w, const struct options *o)
{
	long size = o->smallest;

	if (!test->sized) {
		measure(test, w, o, 0);
		return;
	}
	while (size < o->largest) {
		measure(test, w, o, size);
		size = size > 0 ? 2 * size : 1;
	}
	measure(test, w, o, o->largest);
}

static int run(struct world *w, char **argv)
{
	struct options options;
	char *names;
	int code = read_options(w, argv, &options);

	if (code != 0)
		return code;
	names = gather_names(w);
	choose_pair(w, names);
	if (w->rank == 0)
		print_head(w, names);
	for (int i = 0; i < mpitest_count; i++) {
		const struct test *test = &mpitest_tests[i];

		if (strcmp(options.test, "all") == 0 || strcmp(options.test, test->name) == 0)
			measure_sizes(test, w, &options);
	}
	if (w->rank == 0)
		printf("]}\n");
	free(names);
	return 0;
}

int main(int argc, char **argv)
{
	struct world w = {0, 0, 0, 0};
	int code;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
	code = run(&w, argv);
	MPI_Finalize();
	return code;
}
