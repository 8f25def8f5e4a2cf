#include "record/record_folder.h"

#include "base/file.h"

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

int sy_open_job_path(int top, const char *job_path, struct sy_error *err)
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
	return sy_open_job_path(top, job_path, err);
}
