/* Verifies sizes and contents of the test files. Part of fstest.c. */
#ifndef FSTEST_VERIFY_H
#define FSTEST_VERIFY_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fstest_content.h"
#include "fstest_run_state.h"

enum { SAMPLES = 64, SAMPLE_BYTES = 4096 };

/* Compares one piece of a target file with what must stand there; 0, or an exit code. */
static int verify_piece(const struct work *w, int fd, uint64_t file, uint64_t at)
{
	char want[SAMPLE_BYTES], found[SAMPLE_BYTES];
	uint64_t rest = w->bytes_per_file - at;
	size_t bytes = rest < SAMPLE_BYTES ? (size_t)rest : SAMPLE_BYTES;
	ssize_t n = pread(fd, found, bytes, (off_t)at);

	if (n < 0)
		return io_error(w, "cannot read back");
	fill(want, bytes, file, at);
	/* Of random bytes only their number can be known. */
	if (w->o.processes && w->o.test == SMALL_WRITE)
		return (size_t)n == bytes
			   ? 0
			   : fail(EX_VERIFY, "file %" PRIu64 " of %s is too short", file, w->path);
	if ((size_t)n != bytes || memcmp(want, found, bytes) != 0)
		return fail(EX_VERIFY, "file %" PRIu64 " of %s differs near byte %" PRIu64, file,
			    w->path, at);
	return 0;
}

static int verify_size(const struct work *w, uint64_t file)
{
	char name[NAME_BYTES];
	struct stat st;

	if (fstatat(w->target_fd, name_of(name, file), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return io_error(w, "cannot look at a written file");
	if ((uint64_t)st.st_size != w->bytes_per_file)
		return fail(EX_VERIFY, "file %" PRIu64 " of %s has %jd bytes instead of %" PRIu64,
			    file, w->path, (intmax_t)st.st_size, w->bytes_per_file);
	return 0;
}

static int verify_file(const struct work *w, uint64_t file)
{
	char name[NAME_BYTES];
	uint64_t step = w->bytes_per_file / SAMPLES + 1;
	int fd, rc = verify_size(w, file);

	if (rc != 0)
		return rc;
	fd = openat(w->target_fd, name_of(name, file), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(w, "cannot read back");
	if (step < SAMPLE_BYTES)
		step = SAMPLE_BYTES;
	for (uint64_t at = 0; rc == 0 && at < w->bytes_per_file; at += step)
		rc = verify_piece(w, fd, file, at);
	close(fd);
	return rc;
}

/* Every size, and the content of at most SAMPLES files at SAMPLES places. */
static int verify(const struct work *w)
{
	uint64_t step = w->files / SAMPLES + 1;
	int rc = 0;

	for (uint64_t file = 0; rc == 0 && file < w->files; file++)
		rc = file % step == 0 ? verify_file(w, file) : verify_size(w, file);
	return rc;
}

#endif
