#include "program/cold_cache.h"

#include "base/cvmfs.h"
#include "base/exec.h"
#include "base/file.h"
#include "job/conditions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdarg.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MB	     1000000
#define MOUNTS_BYTES (1 << 20)

/* What stays is what others read meanwhile. */
#define MAY_STAY_BYTES (256LL << 20)

__attribute__((format(printf, 2, 3))) static void add(json_t *list, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)json_array_append_new(list, json_string(text));
}

static int64_t meminfo_kb(const char *text, const char *key)
{
	int64_t kb = 0;
	char line[32];
	const char *found;

	(void)snprintf(line, sizeof(line), "\n%s:", key);
	found = strstr(text, line);
	return found && sscanf(found + strlen(line), "%" SCNd64, &kb) == 1 ? kb : -1;
}

/* Pages of files that can be dropped. Not those of tmpfs, which count as cached and can only be
 * swapped, nor pages that running programs have mapped or write: they stay in the coldest cache.
 * -1: unknown. */
static int64_t cached_bytes(int root)
{
	static const char *const staying[] = {"Shmem", "Mapped", "Dirty", "Writeback"};
	char text[8192];
	int64_t kb;

	if (sy_read_at(root, "/proc/meminfo", text, sizeof(text)) < 0)
		return -1;
	kb = meminfo_kb(text, "Cached");
	for (size_t i = 0; kb >= 0 && i < sizeof(staying) / sizeof(staying[0]); i++) {
		int64_t staying_kb = meminfo_kb(text, staying[i]);

		kb = staying_kb < 0 ? -1 : kb > staying_kb ? kb - staying_kb : 0;
	}
	return kb < 0 ? -1 : kb * 1024;
}

/* A file below the root, for writing; drop_caches must be there already. */
static int write_file(int root, const char *path, int flags, const char *text)
{
	cleanup_close int fd =
	    openat(root, path + 1, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0644);

	return fd < 0 ? -errno : sy_write_all(fd, text, strlen(text));
}

static json_t *bytes_or_null(int64_t bytes)
{
	return bytes < 0 ? json_null() : json_integer(bytes);
}

/* The caller has given up: the read end of our stdout is closed. */
static bool is_reader_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

static int drop_page_cache(int root, json_t *answer, struct sy_error *err)
{
	int64_t before, after;
	int result;

	sync(); /* a page that waits to be written cannot be dropped */
	/* That may take minutes: the job was refused meanwhile, and the next one has its files
	 * here. */
	if (is_reader_gone())
		return sy_fail(err, "cache=cold: given up, for nobody waits for it any more");
	before = cached_bytes(root);
	result = write_file(root, "/proc/sys/vm/drop_caches", 0, "3\n");
	after = cached_bytes(root);
	(void)json_object_set_new(answer, "cached_before_bytes", bytes_or_null(before));
	(void)json_object_set_new(answer, "cached_after_bytes", bytes_or_null(after));
	if (result < 0)
		return sy_fail_errno(err, -result,
				     "cache=cold: cannot write to /proc/sys/vm/drop_caches");
	if (after > MAY_STAY_BYTES && after > before / 2)
		return sy_fail(err,
			       "cache=cold: %" PRId64 " MB of %" PRId64 " MB of files stayed in "
			       "memory, expected at most half of them",
			       after / MB, before / MB);
	return 0;
}

/* CVMFS_QUOTA_LIMIT, in MB (CernVM-FS documentation, "Client Configuration"). */
static int set_limit(int root, int64_t quota_bytes)
{
	char line[64];

	if (!quota_bytes)
		return unlinkat(root, &SY_CVMFS_LIMIT_FILE[1], 0) < 0 && errno != ENOENT ? -errno
											 : 0;
	(void)snprintf(line, sizeof(line), "CVMFS_QUOTA_LIMIT=%" PRId64 "\n", quota_bytes / MB);
	return write_file(root, SY_CVMFS_LIMIT_FILE, O_CREAT | O_TRUNC, line);
}

/* Folders that cvmfs_config reports as wiped (cvmfs_reload() of CernVM-FS' cvmfs/cvmfs_config).
 * It ends with 0 also when it skipped a folder, or had none to wipe. -1: `failed_folder` begins
 * the report of a skipped one. */
static int wiped_folders(const char *output, const char **failed_folder)
{
	static const char start[] = "Wiping out ", end[] = " ... OK";
	const size_t end_length = sizeof(end) - 1;
	int folders = 0;

	for (const char *at = output; (at = strstr(at, start)); folders++) {
		size_t length = strcspn(at, "\n");

		*failed_folder = at;
		if (strncmp(at + length - end_length, end, end_length))
			return -1;
		at += length;
	}
	return folders;
}

/* No repository is mounted, nor was one since the node has started; its cache may be full. */
#define NONE_WIPED                                                                                 \
	"cvmfs_config wipecache wiped no folder: no repository is mounted (expected 'Wiping out "  \
	"FOLDER ... OK'; list one below /cvmfs first)"

static int check_wiped(const char *output, bool is_requested, json_t *done, json_t *refused,
		       struct sy_error *err)
{
	const char *failed_folder = "";
	int folders = wiped_folders(output, &failed_folder);

	if (folders < 0)
		return sy_fail(err, "cache=cold: CVMFS' cache was not wiped: %.*s",
			       (int)strcspn(failed_folder, "\n"), failed_folder);
	if (folders == 0 && is_requested)
		return sy_fail(err, "cache=cold: " NONE_WIPED);
	if (folders == 0)
		add(refused, "CVMFS cache: " NONE_WIPED);
	else
		add(done, "CVMFS cache");
	return 0;
}

/* A client that came without cvmfs_config, in Rust or from a container: nothing here can wipe its
 * cache. Without a mounted repository there is nothing to wipe. */
static void refuse_unwiped(int root, json_t *refused)
{
	cleanup_free char *text = sy_read_all_at(root, "/proc/self/mounts", MOUNTS_BYTES);
	FILE *file = text ? fmemopen(text, strlen(text), "r") : NULL;
	struct mntent mount;
	char line[4096];

	while (file && getmntent_r(file, &mount, line, sizeof(line))) {
		if (!sy_is_cvmfs_mount(mount.mnt_type, mount.mnt_fsname))
			continue;
		add(refused,
		    "CVMFS cache: %s is mounted, and there is no /usr/bin/cvmfs_config to wipe its "
		    "cache",
		    mount.mnt_dir);
		break;
	}
	if (file)
		(void)fclose(file);
}

/* Killed in between, cvmfs_config leaves repositories paused, and every access to them hangs: it is
 * left to end by itself. It drains the kernel's caches of all of them at once, for
 * CVMFS_KCACHE_TIMEOUT (60 s) at most, then removes files. */
static char *run_wipecache(struct sy_error *err)
{
	static const char *const argv[] = {"cvmfs_config", "wipecache", NULL};
	cleanup_output struct sy_output output = {0};
	char *text;

	if (sy_run_or_leave(SY_WIPE_LIMIT_MS, argv, &output, err) < 0)
		return NULL;
	if (output.status) {
		(void)sy_fail(err, "cvmfs_config wipecache: %.*s",
			      (int)strcspn(output.problem, "\n"), output.problem);
		return NULL;
	}
	text = output.out;
	output.out = NULL;
	return text;
}

static int wipe_cvmfs(int root, int64_t quota_bytes, bool is_requested, json_t *done,
		      json_t *refused, struct sy_error *err)
{
	struct sy_error reason;
	cleanup_free char *output = NULL;
	int limited;

	if (faccessat(root, "usr/bin/cvmfs_config", X_OK, 0) < 0) {
		if (is_requested)
			return sy_fail(err,
				       "cache=cold: a limit of CVMFS' cache was asked for, and "
				       "there is no /usr/bin/cvmfs_config");
		refuse_unwiped(root, refused);
		return 0;
	}
	limited = set_limit(root, quota_bytes);
	if (limited < 0 && is_requested)
		return sy_fail_errno(err, -limited,
				     "cache=cold: the limit of CVMFS' cache cannot be set: cannot "
				     "change " SY_CVMFS_LIMIT_FILE);
	output = run_wipecache(&reason);
	if (!output)
		return sy_fail(err, "cache=cold: CVMFS' cache was not wiped: %s", reason.text);
	if (check_wiped(output, is_requested, done, refused, err) < 0)
		return -1;
	if (limited < 0)
		add(refused, "CVMFS limit: cannot change %s: %s", SY_CVMFS_LIMIT_FILE,
		    strerror(-limited));
	else if (quota_bytes)
		add(done, "CVMFS limit %" PRId64 " MB", quota_bytes / MB);
	return 0;
}

int sy_cache_drop(int root, int64_t cvmfs_quota_bytes, bool is_requested, json_t **answer,
		  struct sy_error *err)
{
	json_t *done = json_array(), *refused = json_array();

	*answer = json_pack("{s:s,s:o,s:o}", "requested", "cold", "done", done, "refused", refused);
	/* CVMFS first: what the wiping reads is dropped as well. */
	if (wipe_cvmfs(root, cvmfs_quota_bytes, is_requested, done, refused, err) < 0 ||
	    drop_page_cache(root, *answer, err) < 0) {
		json_decref(*answer);
		*answer = NULL;
		return -1;
	}
	add(done, "page cache");
	add(done, "dentries and inodes");
	return 0;
}
