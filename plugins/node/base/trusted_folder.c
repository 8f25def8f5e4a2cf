#include "base/trusted_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sy_is_file_word(const char *word)
{
	size_t length = strlen(word);

	for (const char *c = word; *c; c++)
		if (*c == '/' || (unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return length > 0 && length <= 200 && *word != '.';
}

int sy_folder_check(int fd, const char *what, struct sy_error *err)
{
	struct stat info;

	if (fstat(fd, &info) < 0)
		return sy_fail_errno(err, errno, "cannot look at %s", what);
	if (info.st_uid != 0 && info.st_uid != geteuid())
		return sy_fail(err, "%s belongs to uid %u: it must be root's or ours", what,
			       info.st_uid);
	if (info.st_mode & (S_IWGRP | S_IWOTH))
		return sy_fail(err, "%s may be written by others (mode %04o): say chmod go-w", what,
			       info.st_mode & 07777);
	return 0;
}

int sy_folder_below(const char *run_dir, const char *name, bool make, struct sy_error *err)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open %s", path);
	if (sy_folder_check(fd, path, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}
