#include "record/record_files.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sy_records_are_marked(int top)
{
	struct stat info;

	return fstatat(top, SY_RECORDS_MARK, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(info.st_mode) && (info.st_uid == 0 || info.st_uid == geteuid());
}

bool sy_records_by_day(const char *record_dir)
{
	cleanup_close int top = open(record_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return top >= 0 && sy_records_are_marked(top);
}

bool sy_records_are_marked_by_owner(const char *record_dir)
{
	cleanup_close int top = open(record_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat folder, mark;

	return top >= 0 && fstat(top, &folder) == 0 &&
	       fstatat(top, SY_RECORDS_MARK, &mark, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(mark.st_mode) && mark.st_uid == folder.st_uid;
}

void sy_format_job_path(char job_path[SY_JOB_PATH_SIZE], bool by_day, const char *job_id,
			time_t start)
{
	struct tm utc;

	if (by_day && gmtime_r(&start, &utc))
		(void)snprintf(job_path, SY_JOB_PATH_SIZE, "%04d-%02d/%02d/%.200s",
			       utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, job_id);
	else
		(void)snprintf(job_path, SY_JOB_PATH_SIZE, "%.200s", job_id);
}

/* The folder `name` of `above`, made first if it is not there. */
static int open_level(int above, const char *name, const char *job_path, struct sy_error *err)
{
	int fd;

	if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s of %s in the record folder", name,
				     job_path);
	fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sy_fail_errno(err, errno,
				     "cannot open %s of %s in the record folder as a folder, links "
				     "not followed",
				     name, job_path);
	if (sy_folder_check(fd, name, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Open `job_path` below `top`, each level made where it is not there, no link followed, nobody
 * else's folder gone through: a descriptor, or -1. */
static int open_job_path(int top, const char *job_path, struct sy_error *err)
{
	char path[SY_JOB_PATH_SIZE], *rest = path, *name;
	int fd = -1;

	(void)snprintf(path, sizeof(path), "%s", job_path);
	while ((name = strsep(&rest, "/"))) {
		int next = open_level(fd < 0 ? top : fd, name, job_path, err);

		if (fd >= 0)
			(void)close(fd);
		fd = next;
		if (fd < 0)
			return -1;
	}
	return fd;
}

static int open_top(const char *record_dir, struct sy_error *err)
{
	int top;

	/* Never made here: an empty mount point would have records that nobody finds. */
	top = open(record_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 && errno == ENOENT)
		return sy_fail(err,
			       "the record folder %s is not there: mount its file system, or make "
			       "it once, root's and with mode 0755",
			       record_dir);
	if (top < 0)
		return sy_fail_errno(err, errno, "cannot open the record folder %s", record_dir);
	if (sy_folder_check(top, record_dir, err) == 0)
		return top;
	(void)close(top);
	return -1;
}

int sy_open_job_folder(const char *record_dir, const char *job_id, const char *node,
		       char job_path[SY_JOB_PATH_SIZE], struct sy_error *err)
{
	cleanup_close int top = -1;

	if (!sy_is_file_word(job_id) || !sy_is_file_word(node))
		return sy_fail(err, "'%s', '%s': job and node must be names without '/'", job_id,
			       node);
	top = open_top(record_dir, err);
	if (top < 0)
		return -1;
	sy_format_job_path(job_path, sy_records_are_marked(top), job_id, time(NULL));
	return open_job_path(top, job_path, err);
}

#define SPARE_BYTES 16384 /* room kept for the record to grow by, until the job's end */
#define TRIES	    100	  /* seconds ahead in which a free START is looked for */

static int make(const struct sy_recordfile *file, const char *ending, int flags)
{
	char name[320];

	(void)snprintf(name, sizeof(name), "%s%s", file->name, ending);
	return openat(file->dir, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0440);
}

static int give_to_owner(const struct sy_recordfile *file, int fd)
{
	if (file->has_owner && fchown(fd, file->uid, file->gid) < 0)
		return -1;
	return fchmod(fd, 0440);
}

static int open_temporary_as(const struct sy_recordfile *file, int flags)
{
	char name[320];

	(void)snprintf(name, sizeof(name), ".%s.json.tmp", file->name);
	return openat(file->dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

/* The temporary file, with room for `bytes` where the file system can promise that. */
static int make_temporary(const struct sy_recordfile *file, size_t bytes)
{
	int fd = open_temporary_as(file, O_CREAT | O_EXCL);

	if (fd >= 0 && bytes)
		(void)posix_fallocate(fd, 0, (off_t)bytes);
	return fd;
}

static int open_temporary(const struct sy_recordfile *file)
{
	int fd = open_temporary_as(file, 0);

	return fd < 0 && errno == ENOENT ? make_temporary(file, 0) : fd;
}

/* An empty file reserves the record's name: a sampler that starts in the same second tries the
 * next one. */
static int reserve_name(struct sy_recordfile *file, const char *node, struct sy_error *err)
{
	int64_t now = (int64_t)sy_now_s(CLOCK_REALTIME);

	for (int i = 0; i < TRIES; i++) {
		int fd, failure;

		file->start_unix_s = now + i;
		(void)snprintf(file->name, sizeof(file->name), "%s.%lld", node,
			       (long long)file->start_unix_s);
		fd = make_temporary(file, SPARE_BYTES);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return sy_fail_errno(err, errno, "cannot make a file in the record folder");
		(void)close(fd);
		fd = make(file, ".json", O_WRONLY);
		if (fd >= 0) {
			(void)close(fd);
			return 0;
		}
		failure = errno; /* what cleaning up does to errno is not what went wrong */
		sy_recordfile_close(file);
		if (failure != EEXIST)
			return sy_fail_errno(err, failure, "cannot make %s.json", file->name);
	}
	return sy_fail(err, "%s: there are records of the next %d seconds already", node, TRIES);
}

static int open_in(struct sy_recordfile *file, const struct sy_sampling *sampling, const char *dir,
		   struct sy_error *err)
{
	file->dir = sy_open_job_folder(dir, sampling->job_id, sampling->node, file->job_path, err);
	if (file->dir < 0)
		return -1;
	if (reserve_name(file, sampling->node, err) == 0)
		return 0;
	(void)close(file->dir);
	file->dir = -1;
	return -1;
}

int sy_recordfile_samples(const struct sy_recordfile *file, struct sy_error *err)
{
	int fd = make(file, ".csv", O_WRONLY | O_APPEND);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make %s.csv", file->name);
	if (give_to_owner(file, fd) < 0) {
		(void)close(fd);
		return sy_fail_errno(err, errno, "cannot give %s.csv to the job's user",
				     file->name);
	}
	return fd;
}

static int replace(const struct sy_recordfile *file, const char *text, size_t length,
		   struct sy_error *err)
{
	cleanup_close int fd = open_temporary(file);
	char from[320], to[320];
	int result;

	(void)snprintf(from, sizeof(from), ".%s.json.tmp", file->name);
	(void)snprintf(to, sizeof(to), "%s.json", file->name);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make %s", from);
	result = sy_write_all(fd, text, length);
	if (result < 0)
		return sy_fail_errno(err, -result, "cannot write %s", to);
	if (ftruncate(fd, (off_t)length) < 0 || give_to_owner(file, fd) < 0 || fsync(fd) < 0 ||
	    renameat(file->dir, from, file->dir, to) < 0)
		return sy_fail_errno(err, errno, "cannot replace %s", to);
	(void)fsync(file->dir);
	return 0;
}

int sy_recordfile_write(const struct sy_recordfile *file, const json_t *record,
			struct sy_error *err)
{
	cleanup_free char *text = sy_json_dump(record, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	size_t length;
	int spare;

	if (!text)
		return sy_fail(err, "out of memory for the record");
	length = strlen(text);
	text[length++] = '\n'; /* in the place of the NUL */
	if (replace(file, text, length, err) < 0)
		return -1;
	spare = make_temporary(file, length + SPARE_BYTES);
	if (spare >= 0)
		(void)close(spare);
	return 0;
}

/* Whether there was an empty file, which is gone now. */
static bool remove_empty(const struct sy_recordfile *file, const char *ending)
{
	char name[320];
	struct stat info;

	(void)snprintf(name, sizeof(name), "%s%s", file->name, ending);
	return fstatat(file->dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
	       info.st_size == 0 && unlinkat(file->dir, name, 0) == 0;
}

void sy_recordfile_close(struct sy_recordfile *file)
{
	char name[320];

	(void)snprintf(name, sizeof(name), ".%s.json.tmp", file->name);
	(void)unlinkat(file->dir, name, 0);
	if (remove_empty(file, ".json"))
		(void)remove_empty(file, ".csv");
}

bool sy_has_spool(const char *spool_dir)
{
	struct stat info;

	return lstat(spool_dir, &info) == 0 && S_ISDIR(info.st_mode);
}

int sy_recordfile_open_or_spool(struct sy_recordfile *file, struct sy_sampling *sampling,
				void (*complain)(const struct sy_sampling *,
						 const struct sy_error *),
				struct sy_error *err)
{
	struct sy_error reason;

	if (sampling->command || !sampling->spool_dir || !sy_has_spool(sampling->spool_dir))
		return open_in(file, sampling, sampling->record_dir, err);
	if (!sy_records_by_day(sampling->record_dir) &&
	    !sy_records_are_marked_by_owner(sampling->record_dir))
		(void)sy_fail(&reason,
			      "%s does not bear its mark %s, a file of its owner's: is it mounted?",
			      sampling->record_dir, SY_RECORDS_MARK);
	else if (open_in(file, sampling, sampling->record_dir, &reason) == 0)
		return 0;
	if (open_in(file, sampling, sampling->spool_dir, err) < 0)
		return -1;
	(void)sy_fail(err, "%.300s; the record goes to %.100s", reason.text, sampling->spool_dir);
	complain(sampling, err);
	sampling->record_dir = sampling->spool_dir;
	return 0;
}
