#include "record/stale_conditions.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/unfinished_records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
	return sy_unfinished_has_job(run_dir, name);
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
