#include "record/waiting_samplers.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX ".opening."

static void format_own_name(char name[64])
{
	(void)snprintf(name, 64, PREFIX "%d", (int)getpid());
}

int sy_opening_begin(const char *run_dir)
{
	cleanup_close int folder = sy_folder_below(run_dir, "sample", true, NULL);
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
	cleanup_close int folder = fd < 0 ? -1 : sy_folder_below(run_dir, "sample", false, NULL);
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
	int folder = sy_folder_below(run_dir, "sample", false, NULL), count = 0;
	cleanup_dir DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *entry;
	time_t now = time(NULL);

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			count += is_waiting(folder, entry->d_name, now);
	return count;
}
