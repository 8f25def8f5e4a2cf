/* The test files: what is in them, how they are written, copied and verified; and the state of a
 * test run with its error messages. Part of fstest.c. */
#ifndef FSTEST_FILES_H
#define FSTEST_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fstest_options.h"

/* --- the content of test files: a function of file and offset, so that nothing is stored to verify
 * it --- */

/* splitmix64 (Steele, Lea, Flood 2014): noise that no file system can compress. */
static uint64_t noise(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void fill(char *buffer, size_t bytes, uint64_t file, uint64_t offset)
{
	for (size_t i = 0; i < bytes;) {
		uint64_t at = offset + i, word = noise((file << 44) ^ (at / 8));
		size_t skip = at % 8, n = 8 - skip < bytes - i ? 8 - skip : bytes - i;

		memcpy(buffer + i, (const char *)&word + skip, n);
		i += n;
	}
}

/* --- reading, writing and syncing until a signal stops it: -1 with errno; EINTR is retried unless
 * a signal requested the end --- */

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
	stopped_by = signal;
}

static int write_all(int fd, const char *buffer, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = stopped_by ? (errno = EINTR, -1) : write(fd, buffer, bytes);

		if (n < 0 && errno == EINTR && !stopped_by)
			continue;
		if (n < 0)
			return -1;
		buffer += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static ssize_t read_some(int fd, char *buffer, size_t bytes)
{
	ssize_t n;

	do {
		n = stopped_by ? (errno = EINTR, -1) : read(fd, buffer, bytes);
	} while (n < 0 && errno == EINTR && !stopped_by);
	return n;
}

static int sync_fd(int fd)
{
	int rc;

	do {
		rc = fsync(fd);
	} while (rc < 0 && errno == EINTR && !stopped_by);
	return rc;
}

static int sync_and_close(int fd, bool sync)
{
	int rc = sync ? sync_fd(fd) : 0, saved_errno = errno;

	/* close() reports what a network file system could not write. */
	if (close(fd) < 0 && rc == 0)
		return -1;
	errno = saved_errno;
	return rc;
}

/* --- the state of a test run: options, folders, paths; and its error messages --- */

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

/* --- writing and copying a test file by this process --- */

static int create(const struct work *w, int folder_fd, uint64_t file)
{
	char name[NAME_BYTES];

	return openat(folder_fd, name_of(name, file),
		      O_WRONLY | O_CREAT | (w->o.keep ? O_TRUNC : O_EXCL) | O_CLOEXEC |
			  (w->o.direct ? O_DIRECT : 0),
		      0600);
}

static int write_file(const struct work *w, int folder_fd, uint64_t file, bool sync)
{
	int fd = create(w, folder_fd, file);

	if (fd < 0)
		return -1;
	for (uint64_t at = 0; at < w->bytes_per_file;) {
		uint64_t rest = w->bytes_per_file - at;
		size_t n = rest < w->o.buffer ? (size_t)rest : (size_t)w->o.buffer;

		fill(w->buffer, n, file, at);
		if (write_all(fd, w->buffer, n) < 0) {
			sync_and_close(fd, false);
			return -1;
		}
		at += n;
	}
	return sync_and_close(fd, sync);
}

static int copy_file(const struct work *w, uint64_t file, bool sync)
{
	char name[NAME_BYTES];
	ssize_t n = -1;
	int out, in = openat(w->source_fd, name_of(name, file),
			     O_RDONLY | O_CLOEXEC | (w->o.direct ? O_DIRECT : 0));

	if (in < 0)
		return -1;
	out = create(w, w->target_fd, file);
	while (out >= 0 && (n = read_some(in, w->buffer, (size_t)w->o.buffer)) > 0) {
		if (write_all(out, w->buffer, (size_t)n) < 0) {
			n = -1;
			break;
		}
	}
	if (out >= 0 && sync_and_close(out, sync && n == 0) < 0)
		n = -1;
	sync_and_close(in, false);
	return n == 0 ? 0 : -1;
}

/* --- one process per file, as scripts do: cp or dd, found by PATH --- */

enum { FILE_PATH = PATH_MAX + 64 };

/* 0 when it exits with 0; else -1 with errno. */
static int run_program(char *const argv[])
{
	int status, rc;
	pid_t pid;

	if (stopped_by) {
		errno = EINTR;
		return -1;
	}
	rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
		if (stopped_by)
			kill(pid, SIGTERM);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = EIO;
	return -1;
}

/* cp -f SOURCE TARGET, or dd if=/dev/urandom of=TARGET bs=BYTES count=1. */
static int spawn_file(const struct work *w, uint64_t file)
{
	char source[FILE_PATH + 3], target[FILE_PATH + 3], bytes[32], name[NAME_BYTES];
	char *const cp[] = {"cp", "-f", source, target, NULL};
	char *const dd[] = {"dd", source, target, bytes, "count=1", "status=none", NULL};
	bool copies = w->o.test != SMALL_WRITE;

	name_of(name, file);
	snprintf(target, sizeof(target), "%s%s/target/%s", copies ? "" : "of=", target_path(w),
		 name);
	if (copies) {
		snprintf(source, sizeof(source), "%s/source/%s", source_path(w), name);
		return run_program(cp);
	}
	snprintf(source, sizeof(source), "if=/dev/urandom");
	snprintf(bytes, sizeof(bytes), "bs=%" PRIu64, w->bytes_per_file);
	return run_program(dd);
}

/* --- verifying sizes and contents of the test files --- */

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
