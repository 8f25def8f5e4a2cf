#include "netem/kernel/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int sy_table_file_open(const char *path, const char *what, const char *maker, int most,
		       struct sy_error *err)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat info;

	if (fd < 0)
		return sy_fail_errno(err, errno,
				     "%s %s: cannot be opened; on each node root puts it there%s",
				     what, path, maker);
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
	    (info.st_uid == 0 || info.st_uid == geteuid()) &&
	    !(info.st_mode & (S_IWGRP | S_IWOTH)) && info.st_size < most)
		return fd;
	(void)close(fd);
	return sy_fail(err,
		       "%s %s: expected a file of root's, writable by root alone, of less than %d "
		       "bytes",
		       what, path, most);
}
