/* Options, who reads whose data, and the document that parse.py reads. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iotest.h"

static const char help[] =
    "usage: mpirun -np N steelyard-iotest --directory DIR [OPTIONS]\n"
    "\n"
    "Patterns of I/O as IOR, mdtest and the IO500 have them, of all ranks at once.\n"
    "\n"
    "  --directory DIR   an absolute path: where files are made, read and removed\n"
    "  --pattern NAME    easy: a file for each rank; hard: one file for all; md_easy: empty "
    "files,\n"
    "                    a folder for each rank; md_hard: files with something in them, one\n"
    "                    folder for all [easy]\n"
    "  --transfer BYTES  of each call [1048576]\n"
    "  --block BYTES     that each rank writes [67108864]\n"
    "  --files N         of each rank, md_easy and md_hard [1000]\n"
    "  --stonewall S     stop writing after so many seconds; 0: never [0]\n";

static int refused(const struct test *t, const char *message, const char *word)
{
	if (t->rank == 0)
		fprintf(stderr, "steelyard-iotest: %s '%s'\n", message, word);
	return IOTEST_REFUSED;
}

static int64_t *number_of(struct options *o, const char *name)
{
	if (strcmp(name, "--transfer") == 0)
		return &o->transfer;
	if (strcmp(name, "--block") == 0)
		return &o->block;
	return strcmp(name, "--files") == 0 ? &o->files : NULL;
}

static int read_option(struct test *t, const char *name, const char *value)
{
	struct options *o = &t->options;
	int64_t *number = number_of(o, name);
	char *end = NULL;

	if (number)
		*number = strtoll(value, &end, 10);
	else if (strcmp(name, "--stonewall") == 0)
		o->stonewall_s = strtod(value, &end);
	else if (strcmp(name, "--directory") == 0)
		o->directory = value;
	else if (strcmp(name, "--pattern") == 0)
		o->pattern = value;
	else
		return refused(t, "unknown argument", name);
	if (end && (*value == '\0' || *end != '\0'))
		return refused(t, "expected a number, found", value);
	return 0;
}

static int read_options(struct test *t, char **argv)
{
	struct options *o = &t->options;

	*o = (struct options){"", "easy", 1 << 20, 64 << 20, 1000, 0};
	for (int i = 1; argv[i]; i += 2) {
		int code = argv[i + 1] ? read_option(t, argv[i], argv[i + 1])
				       : refused(t, "a value is missing after", argv[i]);

		if (code != 0)
			return code;
	}
	if (o->transfer < 8 || o->block < o->transfer || o->files < 1 || o->stonewall_s < 0)
		return refused(
		    t, "expected 8 bytes a transfer, a file and a transfer a block, at least:",
		    o->pattern);
	return o->directory[0] == '/'
		   ? 0
		   : refused(t, "expected --directory /PATH, found", o->directory);
}

/* Nodes are counted by their first ranks; data of the node after this one's are read. */
static void look_around(struct test *t)
{
	MPI_Comm node;
	int on_node, first;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &on_node);
	MPI_Comm_rank(node, &first);
	first = first == 0;
	MPI_Allreduce(&first, &t->nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Bcast(&on_node, 1, MPI_INT, 0, MPI_COMM_WORLD);
	t->reads_of = (t->rank + (t->nodes > 1 ? on_node : 1)) % t->ranks;
	MPI_Comm_free(&node);
}

/* All ranks must see what one of them makes. */
static void check_shared(const struct test *t)
{
	char path[IOTEST_PATH];
	FILE *file;

	snprintf(path, sizeof(path), "%s/seen", t->options.directory);
	errno = 0;
	if (t->rank == 0) {
		file = fopen(path, "w");
		if (!file || fclose(file) != 0)
			iotest_stop(t, "cannot be written", path);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (access(path, R_OK) != 0)
		iotest_stop(
		    t, "is not seen on this rank's node: give a directory that all nodes share",
		    path);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t->rank == 0)
		unlink(path);
}

static void print(const struct test *t)
{
	const struct options *o = &t->options;

	printf(
	    "{\"format\": \"steelyard-ior\", \"version\": 1, \"pattern\": \"%s\", \"ranks\": %d, "
	    "\"nodes\": %d, \"transfer\": %" PRId64 ", \"block\": %" PRId64 ", \"files\": %" PRId64
	    ", \"stonewall_s\": %.9g, \"reached\": %" PRId64 ", \"least\": %" PRId64
	    ", \"phases\": [",
	    o->pattern, t->ranks, t->nodes, o->transfer, o->block, o->files, o->stonewall_s,
	    t->reached, t->least);
	for (int i = 0; i < t->phases; i++)
		printf("%s{\"name\": \"%s\", \"seconds\": %.9f, \"operations\": %" PRId64
		       ", \"bytes\": %" PRId64 "}",
		       i ? ", " : "", t->phase[i].name, t->phase[i].seconds, t->phase[i].operations,
		       t->phase[i].bytes);
	printf("]}\n");
}

static int run(struct test *t, char **argv)
{
	int code = read_options(t, argv);
	const char *pattern = t->options.pattern;
	const bool metadata = strncmp(pattern, "md_", 3) == 0;
	const char *kind = metadata ? pattern + 3 : pattern;

	if (code != 0)
		return code;
	if (strcmp(kind, "easy") != 0 && strcmp(kind, "hard") != 0)
		return refused(t, "expected easy, hard, md_easy or md_hard, found", pattern);
	look_around(t);
	check_shared(t);
	if (metadata)
		iotest_metadata(t, kind[0] == 'h');
	else
		iotest_files(t, kind[0] == 'h');
	if (t->rank == 0)
		print(t);
	return 0;
}

int main(int argc, char **argv)
{
	static struct test t;
	int code;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(help, stdout) < 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
	code = run(&t, argv);
	MPI_Finalize();
	return code;
}
