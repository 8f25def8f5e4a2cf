/* Options and exit codes of fstest.c. */
#ifndef FSTEST_OPTIONS_H
#define FSTEST_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EX_DONE = 0,
	EX_OPTIONS = 2,	  /* wrong usage */
	EX_DIRECTORY = 3, /* the directory is missing or none */
	EX_ACCESS = 4,	  /* it cannot be written to */
	EX_SPACE = 5,	  /* not enough space or inodes */
	EX_IO = 6,	  /* a call failed while testing */
	EX_VERIFY = 7,	  /* what was read back is not what was written */
	EX_DIRECT = 8,	  /* the file system does not take O_DIRECT, or not with these sizes */
};

/* Buffers, offsets and sizes of O_DIRECT (open(2)): no block device asks for more than a page. What
 * a file may have past its last whole page is found out by the file system's own answer. */
enum { DIRECT_BYTES = 4096, SECTOR_BYTES = 512 };

static const char *const TESTS[] = {"large_file_copy", "small_file_copy", "small_file_write"};
static const char *const SYNCS[] = {"each", "end", "none"};
enum test { LARGE_COPY, SMALL_COPY, SMALL_WRITE };
enum sync_mode { SYNC_EACH, SYNC_END, SYNC_NONE };

struct options {
	enum test test;
	enum sync_mode sync;
	const char *directory;
	const char *local; /* the other end of copies by --process each; NULL: the directory too */
	uint64_t size, files, file_size, iterations, buffer, rest_ms;
	bool direct;	/* reads and writes past the page cache */
	bool processes; /* one for each file */
	bool keep;	/* the files of one iteration are there in the next */
};

static const char help[] =
    "usage: steelyard-fstest --test TEST --directory DIR [OPTIONS]\n"
    "\n"
    "Times a file-system test in a folder of its own below DIR.\n"
    "\n"
    "tests:\n"
    "  large_file_copy   one file of --size bytes is copied\n"
    "  small_file_copy   --files files of --file-size bytes are copied, one after the other\n"
    "  small_file_write  --files files of --file-size bytes are written\n"
    "\n"
    "options:\n"
    "  --size BYTES           of the large file [256 MiB]\n"
    "  --files N              how many small ones [1000]\n"
    "  --file-size BYTES      of each [1024]\n"
    "  --iterations N         of the test [5]\n"
    "  --buffer BYTES         of each read and write [1 MiB]\n"
    "  --sync each|end|none   fsync of each file before its close, of all at the end, or of none\n"
    "                         [each]\n"
    "  --direct               past the page cache, for sources and targets alike\n"
    "  --process one|each     each: a process for each file, as scripts do: cp -f, or dd from\n"
    "                         /dev/urandom; their start is in the time [one]\n"
    "  --local DIR            copies of --process each are between --directory and DIR: a large\n"
    "                         file from there, small ones into it\n"
    "  --keep                 an iteration's files stay for the next one to write over\n"
    "  --rest MS              between two iterations\n"
    "\n"
    "Output: lines of JSON: one of parameters, one for each iteration, one of the file system.\n";

static int usage(const char *problem, const char *value)
{
	fprintf(stderr, "steelyard-fstest: %s%s%s\n%s", problem, value ? ": " : "",
		value ? value : "", help);
	return EX_OPTIONS;
}

static bool parse_count(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *value > 0 &&
	       *value <= most;
}

static int parse_word(const char *text, const char *const words[static 3])
{
	for (int i = 0; i < 3; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	return -1;
}

static bool set_option(struct options *o, int option, const char *text)
{
	int word;

	switch (option) {
	case 't':
		word = parse_word(text, TESTS);
		o->test = word < 0 ? LARGE_COPY : (enum test)word;
		return word >= 0;
	case 'y':
		word = parse_word(text, SYNCS);
		o->sync = word < 0 ? SYNC_EACH : (enum sync_mode)word;
		return word >= 0;
	case 'D':
		o->direct = true;
		return true;
	case 'k':
		o->keep = true;
		return true;
	case 'p':
		o->processes = strcmp(text, "each") == 0;
		return o->processes || strcmp(text, "one") == 0;
	case 'l':
		o->local = text;
		return *text != '\0';
	case 'r':
		return parse_count(text, 3600000, &o->rest_ms);
	case 'd':
		o->directory = text;
		return *text != '\0';
	case 's':
		return parse_count(text, INT64_MAX, &o->size);
	case 'n':
		return parse_count(text, 99999999, &o->files);
	case 'f':
		return parse_count(text, (uint64_t)1 << 40, &o->file_size);
	case 'i':
		return parse_count(text, 1000000, &o->iterations);
	default:
		return parse_count(text, (uint64_t)1 << 30, &o->buffer);
	}
}

/* What cp and dd do not do for us. */
static int check_processes(const struct options *o)
{
	if (o->processes && (o->direct || o->sync == SYNC_EACH))
		return usage("--process each takes --sync end or none, and no --direct", NULL);
	if (!o->processes && o->local)
		return usage("--local is of --process each", NULL);
	return 0;
}

static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
	    {"test", required_argument, NULL, 't'},
	    {"directory", required_argument, NULL, 'd'},
	    {"size", required_argument, NULL, 's'},
	    {"files", required_argument, NULL, 'n'},
	    {"file-size", required_argument, NULL, 'f'},
	    {"iterations", required_argument, NULL, 'i'},
	    {"buffer", required_argument, NULL, 'b'},
	    {"sync", required_argument, NULL, 'y'},
	    {"direct", no_argument, NULL, 'D'},
	    {"process", required_argument, NULL, 'p'},
	    {"local", required_argument, NULL, 'l'},
	    {"keep", no_argument, NULL, 'k'},
	    {"rest", required_argument, NULL, 'r'},
	    {NULL, 0, NULL, 0},
	};
	bool test = false;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (option == '?')
			return usage("unknown option or missing value", argv[optind - 1]);
		if (!set_option(o, option, optarg))
			return usage("not allowed as a value", optarg);
		test = test || option == 't';
	}
	if (optind < argc)
		return usage("unexpected argument", argv[optind]);
	if (!test || !o->directory)
		return usage("--test and --directory are needed", NULL);
	if (o->direct && o->buffer % DIRECT_BYTES != 0)
		return usage("--direct needs a --buffer of whole 4096 bytes", NULL);
	return check_processes(o);
}

#endif
