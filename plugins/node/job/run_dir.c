#include "job/run_dir.h"

#include "base/file.h"
#include "base/trusted_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int sy_run_dir_make(const char *run_dir, struct sy_error *err)
{
	cleanup_close int fd = -1;

	if (mkdir(run_dir, 0700) != 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make the folder %s", run_dir);
	fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open the folder %s", run_dir);
	return sy_folder_check(fd, run_dir, err);
}
