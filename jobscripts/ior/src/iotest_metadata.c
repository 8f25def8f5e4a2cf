/* The patterns md_easy and md_hard: many files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iotest.h"

enum { HARD_BYTES = 3901 }; /* the IO500's */

static struct {
	bool hard;
	char path[IOTEST_PATH];
} state;

static const char *folder_of(const struct test *t, int rank)
{
	static char path[IOTEST_PATH - 64];

	if (state.hard)
		snprintf(path, sizeof(path), "%s/all", t->options.directory);
	else
		snprintf(path, sizeof(path), "%s/rank.%d", t->options.directory, rank);
	return path;
}

static const char *file_of(const struct test *t, int rank, int64_t i)
{
	snprintf(state.path, sizeof(state.path), "%s/file.%d.%" PRId64, folder_of(t, rank), rank,
		 i);
	return state.path;
}

static void fill(char *bytes, int rank, int64_t i)
{
	for (int b = 0; b < HARD_BYTES; b++)
		bytes[b] = (char)((uint64_t)b * 31 + (uint64_t)rank * 7 + (uint64_t)i);
}

static void create(struct test *t, int64_t i)
{
	const char *path = file_of(t, t->rank, i);
	char bytes[HARD_BYTES];
	int file;

	errno = 0;
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		iotest_stop(t, "cannot be created", path);
	if (state.hard) {
		fill(bytes, t->rank, i);
		if (write(file, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
			iotest_stop(t, "cannot be written", path);
	}
	if (close(file) != 0)
		iotest_stop(t, "cannot be written", path);
}

static void look(struct test *t, int64_t i)
{
	const char *path = file_of(t, t->reads_of, i);
	struct stat found;

	errno = 0;
	if (stat(path, &found) != 0 || found.st_size != (state.hard ? HARD_BYTES : 0))
		iotest_stop(t, "looked at", path);
}

static void read_file(struct test *t, int64_t i)
{
	const char *path = file_of(t, t->reads_of, i);
	char bytes[HARD_BYTES + 1], wanted[HARD_BYTES];
	ssize_t size;
	int file;

	errno = 0;
	file = open(path, O_RDONLY | O_CLOEXEC);
	size = file < 0 ? -1 : read(file, bytes, sizeof(bytes));
	fill(wanted, t->reads_of, i);
	if (size != HARD_BYTES || memcmp(bytes, wanted, HARD_BYTES) != 0)
		iotest_stop(t, "read", path);
	close(file);
}

static void remove_file(struct test *t, int64_t i)
{
	const char *path = file_of(t, t->rank, i);

	errno = 0;
	if (unlink(path) != 0)
		iotest_stop(t, "cannot be removed", path);
}

void iotest_metadata(struct test *t, bool hard)
{
	const bool makes = !hard || t->rank == 0;

	state.hard = hard;
	errno = 0;
	if (makes && mkdir(folder_of(t, t->rank), 0700) != 0)
		iotest_stop(t, "cannot be made", folder_of(t, t->rank));
	iotest_write_phase(t, "create", t->options.files, hard ? HARD_BYTES : 0, create, NULL);
	iotest_phase(t, "stat", 0, look);
	if (hard)
		iotest_phase(t, "read", HARD_BYTES, read_file);
	iotest_phase(t, "delete", 0, remove_file);
	MPI_Barrier(MPI_COMM_WORLD);
	if (makes)
		rmdir(folder_of(t, t->rank));
}
