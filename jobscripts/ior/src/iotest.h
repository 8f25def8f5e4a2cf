/*
 * Patterns of I/O as IOR, mdtest and the IO500 have them, written here in C and MPI: all ranks at
 * once, each phase between two barriers, as long as the slowest rank needs.
 *
 *   easy     a file for each rank, in long transfers one after another
 *   hard     one file for all, short transfers of the ranks in turn, not aligned to anything
 *   md_easy  empty files, a folder for each rank: created, looked at, removed
 *   md_hard  files with something in them, one folder for all: also read
 *
 * A stonewall: after so many seconds of writing (or creating) each rank stops; then all go on to
 * what the farthest had reached, so that every rank did the same and the slow ones' time counts.
 * What was written is read by a rank of another node, where there is one, and compared.
 */
#ifndef IOTEST_H
#define IOTEST_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

enum { IOTEST_FAILED = 1, IOTEST_REFUSED = 2, IOTEST_PATH = 4096, IOTEST_PHASES = 4 };

struct options {
	const char *directory, *pattern;
	int64_t transfer, block, files;
	double stonewall_s; /* 0: none */
};

struct phase {
	const char *name;
	double seconds;
	int64_t operations, bytes; /* of all ranks */
};

struct test {
	struct options options;
	int rank, ranks, nodes;
	int reads_of;		/* the rank whose data this one reads */
	int64_t reached, least; /* operations of each rank; of the slowest at the stonewall */
	int phases;
	struct phase phase[IOTEST_PHASES];
};

/* One line on stderr with errno's words, and the end of all ranks. */
_Noreturn void iotest_stop(const struct test *t, const char *what, const char *path);

/*
 * Does operation 0, 1 ... until `planned` or the stonewall, then what the farthest rank did; sets
 * reached and least. `finish`, called once at the end, belongs to the time.
 */
typedef void iotest_operation(struct test *t, int64_t i);
void iotest_write_phase(struct test *t, const char *name, int64_t planned, int64_t bytes,
			iotest_operation *operation, void (*finish)(struct test *t));
/* Operations 0 ... reached - 1, without a stonewall. */
void iotest_phase(struct test *t, const char *name, int64_t bytes, iotest_operation *operation);

/* Both: hard is the pattern of one file, or of one folder, for all. */
void iotest_files(struct test *t, bool hard);
void iotest_metadata(struct test *t, bool hard);

#endif
