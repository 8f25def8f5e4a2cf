#include "record/stale_files.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/unfinished.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEEP_S 86400
#define ENDING ".done.json"

static bool is_old(const struct stat *info)
{
	time_t now = (time_t)sy_now_s(CLOCK_REALTIME);
	time_t since_boot = (time_t)sy_now_s(CLOCK_BOOTTIME);

	return info->st_mtime < now - KEEP_S || info->st_mtime < now - since_boot - 1;
}

/* By the wall clock, which may have been set: what a record has still to take is kept whatever it
 * says. */
static bool will_be_taken(const char *run_dir, const char *file)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(ENDING)), file);
	return sy_unfinished_of(run_dir, name);
}

/* States of conditions are not among them: those are undone (netem/undo.h). */
static bool is_left(const char *run_dir, int folder, const char *name)
{
	struct stat info;

	return name[0] != '.' && sy_ends_with(name, ENDING) &&
	       fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
	       is_old(&info) && !will_be_taken(run_dir, name);
}

static int look(const char *run_dir, bool removes)
{
	struct dirent *entry;
	char path[512];
	int count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/netem", run_dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (is_left(run_dir, dirfd(dir), entry->d_name) &&
		    (!removes || unlinkat(dirfd(dir), entry->d_name, 0) == 0))
			count++;
	if (dir)
		(void)closedir(dir);
	return count;
}

bool sy_stale_files_any(const char *run_dir)
{
	return look(run_dir, false);
}

int sy_stale_files_remove(const char *run_dir)
{
	return look(run_dir, true);
}
