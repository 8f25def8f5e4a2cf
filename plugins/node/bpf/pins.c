#include "bpf/pins.h"

#include "base/file.h"
#include "bpf/layout.h"
#include "bpf/system_call.h"
#include "layout_hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

#define STRING(text) #text
#define TEXT(number) STRING(number)

const char *sy_bpf_folder(void)
{
	return "v" TEXT(SY_BPF_HASH);
}

static bool is_bpffs(const char *path)
{
	struct statfs info;

	return statfs(path, &info) == 0 && (unsigned long)info.f_type == BPF_FS_MAGIC;
}

/* BASE is directly in such a filesystem, or in the folder where one will be mounted. */
static int make_base(const char *base, struct sy_error *err)
{
	char above[SY_BPF_PATH];

	(void)snprintf(above, sizeof(above), "%s", base);
	if (above[0] != '/' || strrchr(above, '/') == above)
		return sy_fail(err, "%s: expected a folder in a bpf filesystem", base);
	*strrchr(above, '/') = '\0';
	if (!is_bpffs(above) &&
	    mount("bpf", above, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return sy_fail_errno(err, errno, "cannot mount a bpf filesystem on %s", above);
	if (mkdir(base, 0700) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s", base);
	return 0;
}

int sy_bpf_lock(const char *base, bool make, int patience_ms, struct sy_error *err)
{
	struct stat info;
	int fd;

	if (make && make_base(base, err) < 0)
		return -1;
	fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open %s", base);
	if (!is_bpffs(base) || fstat(fd, &info) < 0 || info.st_uid != 0 || info.st_mode & 022) {
		(void)close(fd);
		return sy_fail(err,
			       "%s: expected root's own folder in a bpf filesystem, writable by "
			       "nobody else",
			       base);
	}
	if (sy_lock(fd, patience_ms))
		return fd;
	(void)close(fd);
	(void)sy_fail(err, "another process has had the lock of %s for %.1f s", base,
		      patience_ms / 1e3);
	return SY_BPF_BUSY;
}

static int open_folder(const char *base, const char *folder)
{
	char path[SY_BPF_PATH];

	return snprintf(path, sizeof(path), "%s/%s", base, folder) < (int)sizeof(path)
		   ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		   : -1;
}

int sy_bpf_use(const char *base)
{
	int fd = open_folder(base, sy_bpf_folder());

	if (fd >= 0)
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

int sy_bpf_open(const char *base, const char *name)
{
	char path[SY_BPF_PATH];

	if (snprintf(path, sizeof(path), "%s/%s/%s", base, sy_bpf_folder(), name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return sy_bpf_get(path);
}

void sy_bpf_unpin(const char *base, const char *folder)
{
	char path[SY_BPF_PATH];
	const struct dirent *entry;
	cleanup_dir DIR *pins = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", base, folder) >= (int)sizeof(path))
		return;
	pins = opendir(path);
	while (pins && (entry = readdir(pins)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(pins), entry->d_name, 0) == 0)
			rewinddir(pins);
	(void)rmdir(path);
}

bool sy_bpf_has_pins(const char *base)
{
	const struct dirent *entry;
	cleanup_dir DIR *all = opendir(base);
	bool found = false;

	while (all && !found && (entry = readdir(all)))
		found = entry->d_name[0] != '.';
	return found;
}

bool sy_bpf_is_used(const char *base, const char *folder)
{
	cleanup_close int fd = open_folder(base, folder);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

int sy_bpf_linger(const char *base)
{
	char above[SY_BPF_PATH];
	int fd;

	(void)snprintf(above, sizeof(above), "%s", base);
	if (!strchr(above, '/'))
		return -1;
	*strrchr(above, '/') = '\0';
	fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	(void)close(fd);
	return -1;
}
