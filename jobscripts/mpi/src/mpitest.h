/*
 * The benchmark mpi in C: the same tests, options and document as client.py, without Python's share
 * of each message. Collectives are measured in synchronised windows: every call begins on all ranks
 * at a moment agreed on, so that a rank that comes late from the one before does not count as time
 * of this one, nor a rank that may leave early as its end.
 */
#ifndef MPITEST_H
#define MPITEST_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

enum { MPITEST_PROGRAM_ERROR = 1, MPITEST_REFUSED = 2 };

/* All ranks, and the two that measure latency and bandwidth. */
struct world {
	int rank, ranks, first, second;
};

struct options {
	const char *test, *tags; /* NULL: none */
	long smallest, largest, iterations, warm_up, repetitions;
};

/* A test prepared for messages of so many bytes. */
struct task {
	const struct world *world;
	size_t size;
	char *out, *back;
};

struct test {
	const char *name;
	bool pair;    /* of two ranks; the others have no part in it */
	bool windows; /* each call by itself, in a window */
	bool sized;
	/* Buffers beside `size`: of so many messages; 0: of one for each rank. */
	int messages;
	void (*run)(struct task *task, long count);
	/* Whether what arrived is what was sent. */
	bool (*right)(const struct task *task);
};

extern const struct test mpitest_tests[];
extern const int mpitest_count;

bool mpitest_takes_part(const struct test *test, const struct world *world);
void mpitest_prepare(const struct test *test, struct task *task);
void mpitest_free(struct task *task);

/* What one repetition found, the same on all ranks. */
struct found {
	double seconds; /* of one operation, of the slowest rank; mean */
	long operations;
	long late; /* calls left out, since a rank came too late to their window */
};

/* All operations one after another, after a barrier. */
struct found mpitest_together(const struct test *test, struct task *task, long count);
/* Each in a window; seconds < 0: too few were in time. */
struct found mpitest_in_windows(const struct test *test, struct task *task, long count);

#endif
