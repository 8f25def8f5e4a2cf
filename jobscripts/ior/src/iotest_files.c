/* The patterns easy and hard: long files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iotest.h"

static struct {
	char path[IOTEST_PATH];
	uint64_t *words; /* of a transfer, and the rest of its bytes */
	bool hard;
	int file;
} state;

static void name_file(const struct test *t, int rank)
{
	if (state.hard)
		snprintf(state.path, sizeof(state.path), "%s/all", t->options.directory);
	else
		snprintf(state.path, sizeof(state.path), "%s/rank.%d", t->options.directory, rank);
}

static int64_t place(const struct test *t, int rank, int64_t i)
{
	return (state.hard ? i * t->ranks + rank : i) * t->options.transfer;
}

/* What stands at a word of transfer i of a rank: nothing else has the same. */
static uint64_t mark(int rank, int64_t i, int64_t word)
{
	return ((uint64_t)rank << 48 | (uint64_t)i) * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)word;
}

static int64_t words_of(const struct test *t)
{
	return t->options.transfer / (int64_t)sizeof(uint64_t);
}

static void write_transfer(struct test *t, int64_t i)
{
	const size_t size = (size_t)t->options.transfer;
	ssize_t written;

	for (int64_t w = 0; w < words_of(t); w++)
		state.words[w] = mark(t->rank, i, w);
	errno = 0;
	written = pwrite(state.file, state.words, size, place(t, t->rank, i));
	if (written != (ssize_t)size)
		iotest_stop(t, "cannot be written", state.path);
}

static void read_transfer(struct test *t, int64_t i)
{
	const size_t size = (size_t)t->options.transfer;

	errno = 0;
	if (pread(state.file, state.words, size, place(t, t->reads_of, i)) != (ssize_t)size)
		iotest_stop(t, "cannot be read", state.path);
	for (int64_t w = 0; w < words_of(t); w++) {
		if (state.words[w] != mark(t->reads_of, i, w))
			iotest_stop(t, "compared", state.path);
	}
}

static void open_file(const struct test *t, int rank, int flags)
{
	name_file(t, rank);
	state.file = open(state.path, flags | O_CLOEXEC, 0600);
	if (state.file < 0)
		iotest_stop(t, "cannot be opened", state.path);
}

static void sync_file(struct test *t)
{
	errno = 0;
	if (fsync(state.file) != 0 || close(state.file) != 0)
		iotest_stop(t, "cannot be written", state.path);
}

void iotest_files(struct test *t, bool hard)
{
	const int64_t planned = t->options.block / t->options.transfer;

	state.hard = hard;
	state.words = calloc(1, (size_t)t->options.transfer);
	if (!state.words)
		iotest_stop(t, "no memory for a transfer", t->options.directory);
	open_file(t, t->rank, O_WRONLY | O_CREAT);
	iotest_write_phase(t, "write", planned, t->options.transfer, write_transfer, sync_file);
	open_file(t, t->reads_of, O_RDONLY);
	iotest_phase(t, "read", t->options.transfer, read_transfer);
	close(state.file);
	MPI_Barrier(MPI_COMM_WORLD);
	name_file(t, t->rank);
	if (!hard || t->rank == 0)
		unlink(state.path);
	free(state.words);
}
