/*
 * The frame around a kernel: options, checks, run, output. Exit codes: 0 verified; 1 not
 * verified (NPB's own programs exit with 0 then) or the JSON could not be written; 2 wrong usage,
 * ranks or too little memory, with one line on stderr.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"
#include "npb_comm.h"

/* What the loops have that are compiled once. */
#if defined(__AVX512F__)
enum { COMPILED_BITS = 512 };
#elif defined(__AVX__)
enum { COMPILED_BITS = 256 };
#elif defined(__SSE2__) || defined(__ARM_NEON)
enum { COMPILED_BITS = 128 };
#else
enum { COMPILED_BITS = 0 };
#endif

/* The order and the tests of the resolver that GCC makes for NPB_VECTOR's clones. */
static struct npb_vectors npb_vectors(void)
{
#ifdef NPB_CLONES
	__builtin_cpu_init();
	if (__builtin_cpu_supports("x86-64-v4"))
		return (struct npb_vectors){"x86-64-v4", 512};
	if (__builtin_cpu_supports("x86-64-v3"))
		return (struct npb_vectors){"x86-64-v3", 256};
	return (struct npb_vectors){"default", COMPILED_BITS};
#else
	return (struct npb_vectors){"compiled", COMPILED_BITS};
#endif
}

#ifndef SY_VERSION
#define SY_VERSION "unknown"
#endif

static void lower_name(char *text, size_t size)
{
	size_t i;

	for (i = 0; npb_kernel.name[i] && i + 1 < size; i++)
		text[i] = (char)(npb_kernel.name[i] - 'A' + 'a');
	text[i] = '\0';
}

static int refused(const struct npb_run *run, const char *message)
{
	char name[8];

	lower_name(name, sizeof(name));
	if (run->rank == 0)
		fprintf(stderr, "npb-%s: %s\n", name, message);
	return 2;
}

static int print_information(const struct npb_run *run, const struct npb_options *options)
{
	char name[8];

	lower_name(name, sizeof(name));
	if (run->rank == 0 && options->version)
		printf("npb-%s %s\n", name, SY_VERSION);
	else if (run->rank == 0)
		printf("usage: mpirun -np RANKS npb-%s --class S|W|A|B|C|D [--json FILE]\n"
		       "The %s kernel of the NAS Parallel Benchmarks (RNR-94-007). Exit code 0: "
		       "verified;\n1: not verified; 2: refused.\n",
		       name, npb_kernel.name);
	return 0;
}

static int closed(const struct npb_run *run, const struct npb_options *options)
{
	struct npb_times times;
	int code = npb_verified(run) ? 0 : 1;

	npb_gather_times(run, &times);
	if (run->rank != 0)
		return code;
	npb_print_closing(&npb_kernel, run, &times);
	if (options->json && !npb_write_json(options->json, &npb_kernel, run, &times)) {
		fprintf(stderr, "npb: %s: cannot be written: %s\n", options->json, strerror(errno));
		code = 1;
	}
	return code;
}

/* Of the rank with the narrowest ones, for which the others wait. */
static struct npb_vectors narrowest(const struct npb_run *run)
{
	struct npb_vectors found =
	    npb_kernel.narrow ? (struct npb_vectors){"not used", 0} : npb_vectors();
	struct {
		int bits, rank;
	} mine = {found.bits, run->rank}, least;

	MPI_Allreduce(&mine, &least, 1, MPI_2INT, MPI_MINLOC, run->comm);
	MPI_Bcast(&found, sizeof(found), MPI_BYTE, least.rank, run->comm);
	return found;
}

static int run_kernel(struct npb_run *run, int argc, char **argv)
{
	struct npb_options options;
	char message[512];

	if (!npb_parse_options(argc, argv, &options, message, sizeof(message)))
		return refused(run, message);
	if (options.help || options.version)
		return print_information(run, &options);
	run->class = options.class;
	run->class_name = npb_class_name(options.class);
	if (!npb_check_ranks(&npb_kernel, run->class, run->ranks, message, sizeof(message)) ||
	    !npb_check_memory(&npb_kernel, run, message, sizeof(message)))
		return refused(run, message);
	run->vectors = narrowest(run);
	npb_kernel.describe(run);
	if (run->rank == 0)
		npb_print_heading(&npb_kernel, run);
	npb_kernel.run(run);
#ifdef NPB_CHECK_LEAKS
	if (npb_count_allocations() != 0) {
		fprintf(stderr, "rank %d: %ld blocks of memory were not freed\n", run->rank,
			npb_count_allocations());
		abort();
	}
#endif
	return closed(run, &options);
}

int main(int argc, char **argv)
{
	static struct npb_run run;
	int code;

	MPI_Init(&argc, &argv);
	run.comm = MPI_COMM_WORLD;
	MPI_Comm_rank(run.comm, &run.rank);
	MPI_Comm_size(run.comm, &run.ranks);
	code = run_kernel(&run, argc, argv);
	/* What rank 0 found is what the program says. */
	MPI_Bcast(&code, 1, MPI_INT, 0, run.comm);
	MPI_Finalize();
	return code;
}
