#include "base/place.h"

#include "base/file.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

bool sy_records_are_somebodys(const char *record_dir)
{
	cleanup_close int top = open(record_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat folder, mark;

	return top >= 0 && fstat(top, &folder) == 0 &&
	       fstatat(top, SY_RECORDS_MARK, &mark, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(mark.st_mode) && mark.st_uid == folder.st_uid;
}

void sy_place(char place[SY_PLACE_SIZE], bool by_day, const char *job_id, time_t start)
{
	struct tm utc;

	if (by_day && gmtime_r(&start, &utc))
		(void)snprintf(place, SY_PLACE_SIZE, "%04d-%02d/%02d/%.200s", utc.tm_year + 1900,
			       utc.tm_mon + 1, utc.tm_mday, job_id);
	else
		(void)snprintf(place, SY_PLACE_SIZE, "%.200s", job_id);
}

/* The folder `name` of `above`, made first if it is not there. */
static int open_level(int above, const char *name, const char *place, struct sy_error *err)
{
	int fd;

	if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s of %s in the record folder", name,
				     place);
	fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sy_fail_errno(err, errno,
				     "cannot open %s of %s in the record folder as a folder, links "
				     "not followed",
				     name, place);
	if (sy_folder_check(fd, name, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

int sy_place_open(int top, const char *place, struct sy_error *err)
{
	char path[SY_PLACE_SIZE], *rest = path, *name;
	int fd = -1;

	(void)snprintf(path, sizeof(path), "%s", place);
	while ((name = strsep(&rest, "/"))) {
		int next = open_level(fd < 0 ? top : fd, name, place, err);

		if (fd >= 0)
			(void)close(fd);
		fd = next;
		if (fd < 0)
			return -1;
	}
	return fd;
}
