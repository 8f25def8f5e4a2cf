/*
 * steelyard-fstest: its help (fstest_options.h) says what it does.
 *
 * One iteration is timed by CLOCK_MONOTONIC from before the first open to after the last close,
 * with fsync inside as --sync says: `each` file before its close, all files at the `end` (they are
 * opened again for it), or `none`. With each and end the target folder is synced too, last, so that
 * the names are safe as well as the bytes. Making the sources, verifying and deleting are outside.
 *
 * Copies go through read() and write() with a buffer of ours: copy_file_range() and reflinks would
 * let the file system (or its server) share the blocks, and nothing would have been copied.
 * Sources have just been written: they come from the page cache unless something drops it, or
 * --direct goes around it, for sources and targets alike; verifying does not.
 *
 * Output: JSON lines: one of parameters, one per iteration, one at the end with the file system.
 * Exit codes: fstest_options.h; after SIGINT, SIGTERM or SIGHUP 128 + the signal. The folder is
 * always removed again; nothing is touched that this program did not make.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "fstest_files.h"
#include "fstest_mount.h"
#include "fstest_options.h"

/* --- one iteration ----------------------------------------------------------------------------*/

static int sync_folder(struct work *w)
{
	if (sync_fd(w->target_fd) == 0)
		return 0;
	/* Some FUSE file systems have no fsync for folders: the last line reports it. */
	w->folder_synced = false;
	return errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EBADF ? 0 : -1;
}

static int sync_at_end(const struct work *w)
{
	for (uint64_t file = 0; file < w->files; file++) {
		char name[NAME_BYTES];
		int fd = openat(w->target_fd, name_of(name, file), O_WRONLY | O_CLOEXEC);

		if (fd < 0 || sync_and_close(fd, true) < 0)
			return -1;
	}
	return 0;
}

static int do_file(const struct work *w, uint64_t file, bool sync)
{
	if (w->o.processes)
		return spawn_file(w, file);
	return w->o.test == SMALL_WRITE ? write_file(w, w->target_fd, file, sync)
					: copy_file(w, file, sync);
}

/* The timed part; seconds, or -1 with errno. */
static double iterate(struct work *w)
{
	bool each = w->o.sync == SYNC_EACH;
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint64_t file = 0; file < w->files; file++)
		if (do_file(w, file, each) < 0)
			return -1;
	if (w->o.sync == SYNC_END && sync_at_end(w) < 0)
		return -1;
	if (w->o.sync != SYNC_NONE && sync_folder(w) < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
}

static int remove_files(int folder_fd)
{
	DIR *folder = fdopendir(openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	int rc = folder ? 0 : -1;

	while (folder && (entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    unlinkat(folder_fd, entry->d_name, 0) < 0)
			rc = -1;
	if (folder)
		closedir(folder);
	return rc;
}

static void rest(const struct work *w)
{
	struct timespec remaining = {.tv_sec = (time_t)(w->o.rest_ms / 1000),
				     .tv_nsec = (long)(w->o.rest_ms % 1000) * 1000000};

	while (!stopped_by && nanosleep(&remaining, &remaining) < 0 && errno == EINTR)
		;
}

static int run_iterations(struct work *w)
{
	for (uint64_t i = 1; i <= w->o.iterations; i++) {
		double seconds = iterate(w);
		int rc;

		if (seconds < 0)
			return io_error(w, "cannot run the test");
		rc = verify(w);
		if (rc != 0)
			return rc;
		if (!w->o.keep && remove_files(w->target_fd) < 0)
			return io_error(w, "cannot remove the test's files");
		printf("{\"iteration\":%" PRIu64
		       ",\"test\":\"%s\",\"seconds\":%.9f,\"bytes\":%" PRIu64 ",\"files\":%" PRIu64
		       "}\n",
		       i, TESTS[w->o.test], seconds, w->files * w->bytes_per_file, w->files);
		if (i < w->o.iterations)
			rest(w);
	}
	return 0;
}

/* --- the folder ---------------------------------------------------------------------------- */

static bool enough_space(const struct work *w, const struct statvfs *vfs)
{
	uint64_t sets = w->o.test == SMALL_WRITE ? 1 : 2; /* a copy has a source */
	uint64_t block = vfs->f_frsize ? vfs->f_frsize : 4096;
	uint64_t blocks = (w->bytes_per_file / block + 1) * w->files * sets;
	uint64_t inodes = w->files * sets + 3;

	/* Some network file systems know neither number. */
	return (vfs->f_blocks == 0 || vfs->f_bavail >= blocks) &&
	       (vfs->f_files == 0 || vfs->f_favail >= inodes);
}

static int check_directory(struct work *w)
{
	struct statvfs vfs;

	w->parent_fd = open(w->o.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->parent_fd < 0)
		return fail(errno == EACCES ? EX_ACCESS : EX_DIRECTORY,
			    "%s: %s: give a folder that exists", w->o.directory, strerror(errno));
	if (faccessat(w->parent_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return fail(EX_ACCESS, "%s cannot be written to: %s", w->o.directory,
			    strerror(errno));
	if (fstatvfs(w->parent_fd, &vfs) < 0)
		return fail(EX_IO, "%s: statvfs: %s", w->o.directory, strerror(errno));
	if (!enough_space(w, &vfs))
		return fail(EX_SPACE,
			    "%s has not enough space: %" PRIu64 " files of %" PRIu64
			    " bytes%s are needed, %" PRIu64 " bytes and %" PRIu64
			    " inodes are free",
			    w->o.directory, w->files, w->bytes_per_file,
			    w->o.test == SMALL_WRITE ? "" : " twice",
			    (uint64_t)vfs.f_bavail * vfs.f_frsize, (uint64_t)vfs.f_favail);
	return 0;
}

static int open_below(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0700) < 0)
		return -1;
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Our own folder in `parent`; its path is `path`, empty where there is none. */
static int make_own(const char *parent, char path[static PATH_MAX], int *fd)
{
	char host[65] = "";
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(path, PATH_MAX, "%s/steelyard-%s-%jd-XXXXXX", parent, host,
		     (intmax_t)getpid());
	if (n < 0 || n >= PATH_MAX)
		return fail(EX_DIRECTORY, "%s: the path is too long", parent);
	if (!mkdtemp(path)) {
		int code = errno == ENOSPC || errno == EDQUOT ? EX_SPACE : EX_ACCESS;

		n = fail(code, "cannot make a folder in %s: %s", parent, strerror(errno));
		path[0] = '\0';
		return n;
	}
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return 0;
}

static int make_folder(struct work *w)
{
	int rc = make_own(w->o.directory, w->path, &w->dir_fd);

	if (rc == 0 && w->o.local)
		rc = make_own(w->o.local, w->local_path, &w->local_fd);
	if (rc != 0)
		return rc;
	w->source_fd = open_below(is_local(w, false) ? w->local_fd : w->dir_fd, "source");
	w->target_fd = open_below(is_local(w, true) ? w->local_fd : w->dir_fd, "target");
	if (w->source_fd < 0 || w->target_fd < 0)
		return io_error(w, "cannot make the folders");
	return 0;
}

static int make_sources(const struct work *w)
{
	if (w->o.test == SMALL_WRITE)
		return 0;
	for (uint64_t file = 0; file < w->files; file++)
		if (write_file(w, w->source_fd, file, false) < 0)
			return io_error(w, "cannot make the files to copy");
	/* Or writing them back would fall into the timed part. */
	if (w->o.sync != SYNC_NONE && syncfs(w->source_fd) < 0)
		return io_error(w, "cannot sync the files to copy");
	return 0;
}

/* Only ever what make_folder made: by descriptor, no path is followed again but the last. */
static int remove_folder(const struct work *w)
{
	int rc = 0;

	if (!w->path[0])
		return 0;
	stopped_by = 0;
	for (int i = 0; i < 2; i++) {
		int fd = i ? w->target_fd : w->source_fd;
		int parent_fd = is_local(w, i == 1) ? w->local_fd : w->dir_fd;

		if (fd >= 0 && (remove_files(fd) < 0 ||
				unlinkat(parent_fd, i ? "target" : "source", AT_REMOVEDIR) < 0))
			rc = -1;
	}
	if (w->local_path[0] && rmdir(w->local_path) < 0)
		rc = fail(EX_IO, "cannot remove %s: %s", w->local_path, strerror(errno));
	if (rc < 0 || rmdir(w->path) < 0)
		return fail(EX_IO, "cannot remove %s: %s", w->path, strerror(errno));
	return 0;
}

/* --- output and options -------------------------------------------------------------------- */

static void print_start(const struct work *w)
{
	printf("{\"steelyard_fstest\":1,\"program\":\"%s\",\"test\":\"%s\",\"directory\":",
	       SY_VERSION, TESTS[w->o.test]);
	print_json(stdout, w->o.directory);
	printf(",\"files\":%" PRIu64 ",\"file_bytes\":%" PRIu64 ",\"iterations\":%" PRIu64
	       ",\"buffer_bytes\":%" PRIu64
	       ",\"sync\":\"%s\",\"direct\":%s,\"process\":\"%s\",\"keep\":%s}\n",
	       w->files, w->bytes_per_file, w->o.iterations, w->o.buffer, SYNCS[w->o.sync],
	       w->o.direct ? "true" : "false", w->o.processes ? "each" : "one",
	       w->o.keep ? "true" : "false");
}

static void print_end(const struct work *w)
{
	printf("{\"end\":true,\"iterations\":%" PRIu64 ",\"folder_synced\":%s,", w->o.iterations,
	       w->folder_synced ? "true" : "false");
	print_filesystem(stdout, w->parent_fd);
	printf("}\n");
}

static int run(struct work *w)
{
	int rc = check_directory(w);

	if (rc == 0)
		rc = make_folder(w);
	if (rc == 0)
		rc = make_sources(w);
	if (rc == 0) {
		print_start(w);
		rc = run_iterations(w);
	}
	if (rc == 0)
		print_end(w);
	/* A line that could not be written is dropped by stdio: only ferror() remembers it. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && rc == 0)
		rc = fail(EX_IO, "cannot write the output: is the file system full?");
	return rc;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	/* A file size limit and a reader that left are errors of write(), not our death. */
	action.sa_handler = SIG_IGN;
	sigaction(SIGXFSZ, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
}

int main(int argc, char **argv)
{
	static struct work w = {
	    .o = {.size = 256u << 20,
		  .files = 1000,
		  .file_size = 1024,
		  .iterations = 5,
		  .buffer = 1u << 20},
	    .parent_fd = -1,
	    .dir_fd = -1,
	    .local_fd = -1,
	    .source_fd = -1,
	    .target_fd = -1,
	    .folder_synced = true,
	};
	int removed, rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(help, stdout) < 0;
	rc = parse_options(&w.o, argc, argv);
	if (rc != 0)
		return rc;
	w.files = w.o.test == LARGE_COPY ? 1 : w.o.files;
	w.bytes_per_file = w.o.test == LARGE_COPY ? w.o.size : w.o.file_size;
	w.folder_synced = w.o.sync != SYNC_NONE;
	if (w.o.direct && w.bytes_per_file % SECTOR_BYTES != 0)
		return fail(EX_DIRECT, "files of %" PRIu64 " bytes cannot be written by O_DIRECT",
			    w.bytes_per_file);
	if (posix_memalign((void **)&w.buffer, DIRECT_BYTES, (size_t)w.o.buffer) != 0)
		return fail(EX_SPACE, "no memory for a buffer of %" PRIu64 " bytes", w.o.buffer);
	setvbuf(stdout, NULL, _IOLBF, 0);
	catch_signals();
	rc = run(&w);
	removed = remove_folder(&w);
	free(w.buffer);
	return rc != 0 ? rc : removed;
}
