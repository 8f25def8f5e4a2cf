/* The state of a test run: options, folders, paths; and its error messages. Part of fstest.c. */
#ifndef FSTEST_RUN_STATE_H
#define FSTEST_RUN_STATE_H

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fstest_interruptible_io.h"
#include "fstest_options.h"

enum { NAME_BYTES = 24 };

struct work {
	struct options o;
	uint64_t files, bytes_per_file; /* of this test */
	char path[PATH_MAX];		/* our own folder */
	char local_path[PATH_MAX];	/* with --local: another one there */
	int parent_fd, dir_fd, local_fd, source_fd, target_fd;
	char *buffer;
	bool folder_synced; /* false: the file system refuses fsync of a folder */
};

/* One line on stderr; returns the exit code for `return fail(…)`. */
__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...)
{
	va_list args;

	if (stopped_by)
		return 128 + stopped_by;
	fputs("steelyard-fstest: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

static int io_error(const struct work *w, const char *what)
{
	int code = errno == ENOSPC || errno == EDQUOT ? EX_SPACE : EX_IO;

	if (w->o.direct && errno == EINVAL)
		return fail(EX_DIRECT,
			    "the file system of %s does not take O_DIRECT for files of %" PRIu64
			    " bytes: take a multiple of 4096, or do without --direct",
			    w->o.directory, w->bytes_per_file);
	return fail(code, "%s in %s: %s", what, w->path, strerror(errno));
}

static const char *name_of(char name[static NAME_BYTES], uint64_t file)
{
	snprintf(name, NAME_BYTES, "f%08" PRIu64, file);
	return name;
}

/* With --local a large file comes from the directory to there, small ones go from there into it. */
static bool is_local(const struct work *w, bool target)
{
	return w->o.local && w->o.test != SMALL_WRITE && (w->o.test == LARGE_COPY) == target;
}

static const char *source_path(const struct work *w)
{
	return is_local(w, false) ? w->local_path : w->path;
}

static const char *target_path(const struct work *w)
{
	return is_local(w, true) ? w->local_path : w->path;
}

#endif
