#include "record/unfinished_records.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/record_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int open_folder(const char *run_dir, bool make, struct sy_error *err)
{
	return sy_folder_below(run_dir, "sample", make, err);
}

int sy_unfinished_mark(const struct sy_sampling *sampling, const struct sy_recordfile *file,
		       char *mark, size_t size, struct sy_error *err)
{
	cleanup_close int folder = open_folder(sampling->run_dir, true, err);
	char samples[4096], hidden[512];
	int fd;

	(void)snprintf(mark, size, "%.200s.%.250s", sampling->job_id, file->name);
	(void)snprintf(hidden, sizeof(hidden), ".%s", mark);
	(void)snprintf(samples, sizeof(samples), "%.3000s/%s/%.300s.csv", sampling->record_dir,
		       file->job_path, file->name);
	if (folder < 0)
		return -1;
	/* Seen by others when it is locked and whole. */
	fd = openat(folder, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && sy_lock(fd, 0) && sy_write_all(fd, samples, strlen(samples)) == 0 &&
	    renameat(folder, hidden, folder, mark) == 0)
		return fd;
	(void)sy_fail_errno(err, errno, "cannot write %s/sample/%s", sampling->run_dir, mark);
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

void sy_unfinished_end(const char *run_dir, const char *name)
{
	cleanup_close int folder = open_folder(run_dir, false, NULL);

	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
}

/* Nobody else has the mark locked, and it still exists: a finisher unlinks it before it releases
 * the lock. */
static int lock_mark(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat info;

	if (fd >= 0 && sy_lock(fd, 0) && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
	    info.st_nlink > 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

bool sy_unfinished_lock_next(const char *run_dir, char *name, char *samples, size_t size, int *fd)
{
	int folder = open_folder(run_dir, false, NULL);
	cleanup_dir DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;

	*fd = -1;
	while (dir && *fd < 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		*fd = lock_mark(folder, entry->d_name);
		(void)snprintf(name, size, "%s", entry->d_name);
	}
	if (*fd >= 0 && sy_read_fd(*fd, samples, size) < 0)
		samples[0] = '\0';
	return *fd >= 0;
}

/* Whether `mark`, JOB.NODE.START, is of `name`, NODE.JOB; both words may have dots. */
static bool is_mark_of(const char *mark, const char *name)
{
	const char *start = strrchr(mark, '.');
	size_t length = start ? (size_t)(start - mark) : 0;

	if (!length || strlen(name) != length)
		return false;
	for (size_t job = 1; job + 1 < length; job++) {
		size_t node = length - job - 1;

		if (mark[job] == '.' && name[node] == '.' && !memcmp(mark, name + node + 1, job) &&
		    !memcmp(mark + job + 1, name, node))
			return true;
	}
	return false;
}

/* Whether a job's record on a node, `name` NODE.JOB, has still to be finished, by whomever. */
static bool has_mark_of_job(const char *run_dir, const char *name)
{
	int folder = open_folder(run_dir, false, NULL);
	cleanup_dir DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = is_mark_of(entry->d_name, name);
	return found;
}

bool sy_unfinished_exist(const char *run_dir)
{
	char name[512], samples[4096];
	cleanup_close int fd = -1;

	return sy_unfinished_lock_next(run_dir, name, samples, sizeof(name), &fd);
}

#define PREFIX ".opening."

static void format_own_name(char name[64])
{
	(void)snprintf(name, 64, PREFIX "%d", (int)getpid());
}

int sy_opening_begin(const char *run_dir)
{
	cleanup_close int folder = open_folder(run_dir, true, NULL);
	char name[64];
	int fd;

	format_own_name(name);
	fd = folder < 0 ? -1
			: openat(folder, name,
				 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)sy_lock(fd, 0);
	return fd;
}

void sy_opening_end(const char *run_dir, int fd)
{
	cleanup_close int folder = fd < 0 ? -1 : open_folder(run_dir, false, NULL);
	char name[64];

	format_own_name(name);
	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
	if (fd >= 0)
		(void)close(fd);
}

static bool is_waiting(int folder, const char *name, time_t now)
{
	cleanup_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) < 0 || now - info.st_mtime < SY_OPENING_S)
		return false;
	if (!sy_lock(fd, 0))
		return true;
	(void)unlinkat(folder, name, 0);
	return false;
}

int sy_opening_count(const char *run_dir)
{
	int folder = open_folder(run_dir, false, NULL), count = 0;
	cleanup_dir DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *entry;
	time_t now = time(NULL);

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			count += is_waiting(folder, entry->d_name, now);
	return count;
}

#define KEEP_S 86400
#define ENDING ".done.json"

static bool is_old(const struct stat *info)
{
	time_t now = (time_t)sy_now_s(CLOCK_REALTIME);
	time_t since_boot = (time_t)sy_now_s(CLOCK_BOOTTIME);

	return info->st_mtime < now - KEEP_S || info->st_mtime < now - since_boot - 1;
}

/* Checked in addition to the age, since the wall clock may have been set: a file that a record
 * still needs is kept. */
static bool has_unfinished_record(const char *run_dir, const char *file)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(ENDING)), file);
	return has_mark_of_job(run_dir, name);
}

/* States of network conditions are no stale files: netem/undo.h undoes them. */
static bool is_stale(const char *run_dir, int folder, const char *name)
{
	struct stat info;

	return name[0] != '.' && sy_ends_with(name, ENDING) &&
	       fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
	       is_old(&info) && !has_unfinished_record(run_dir, name);
}

int sy_stale_files(const char *run_dir, bool removes)
{
	struct dirent *entry;
	char path[512];
	int count = 0;
	cleanup_dir DIR *dir = NULL;

	(void)snprintf(path, sizeof(path), "%s/netem", run_dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (is_stale(run_dir, dirfd(dir), entry->d_name) &&
		    (!removes || unlinkat(dirfd(dir), entry->d_name, 0) == 0))
			count++;
	return count;
}
