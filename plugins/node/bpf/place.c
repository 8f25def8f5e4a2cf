#include "bpf/place.h"

#include "base/file.h"
#include "bpf/call.h"
#include "bpf/layout.h"

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

/* BASE lies directly in such a filesystem, or on the folder where one is to be mounted. */
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

int sy_bpf_lock(const char *base, bool make, struct sy_error *err)
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
	while (flock(fd, LOCK_EX) < 0) {
		if (errno == EINTR)
			continue;
		(void)close(fd);
		return sy_fail_errno(err, errno, "cannot lock %s", base);
	}
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
	DIR *pins;

	if (snprintf(path, sizeof(path), "%s/%s", base, folder) >= (int)sizeof(path))
		return;
	pins = opendir(path);
	while (pins && (entry = readdir(pins)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(pins), entry->d_name, 0) == 0)
			rewinddir(pins);
	if (pins)
		(void)closedir(pins);
	(void)rmdir(path);
}

/* A job's map can be opened only by its number. */
static bool has_keeper(int jobs, uint64_t id)
{
	uint32_t number, zero = 0;
	struct sy_bpf_job job;
	cleanup_close int map = -1;

	if (sy_bpf_lookup(jobs, &id, &number) < 0)
		return false;
	map = sy_bpf_get_by_number(number);
	return map < 0 || sy_bpf_lookup(map, &zero, &job) < 0 || job.keepers > 0;
}

static void forget_jobs(const char *base, int jobs)
{
	static const char *const others[] = {"queues", "lists"};
	uint64_t id, *after = NULL, kept;

	while (sy_bpf_next_key(jobs, after, &id) == 0) {
		if (has_keeper(jobs, id)) {
			kept = id;
			after = &kept;
			continue;
		}
		(void)sy_bpf_delete(jobs, &id);
		for (size_t i = 0; i < 2; i++) {
			cleanup_close int map = sy_bpf_open(base, others[i]);

			if (map >= 0)
				(void)sy_bpf_delete(map, &id);
		}
	}
}

static int count_keys(int jobs)
{
	uint64_t id, before, *after = NULL;
	int count = 0;

	while (sy_bpf_next_key(jobs, after, &id) == 0) {
		before = id;
		after = &before;
		count++;
	}
	return count;
}

int sy_bpf_count_jobs(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");

	return jobs < 0 ? -1 : count_keys(jobs);
}

/* Of other layouts: an older program of ours goes on for its jobs, and is unpinned when they end;
 * what is left of one that was being loaded goes at once. */
static void sweep_others(const char *base)
{
	const struct dirent *entry;
	DIR *all = opendir(base);

	while (all && (entry = readdir(all))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, sy_bpf_folder()))
			continue;
		sy_bpf_unpin(base, entry->d_name);
		rewinddir(all);
	}
	if (all)
		(void)closedir(all);
}

int sy_bpf_sweep(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");
	int left = 0;

	if (jobs >= 0) {
		forget_jobs(base, jobs);
		left = count_keys(jobs);
	}
	if (left == 0)
		sy_bpf_unpin(base, sy_bpf_folder());
	sweep_others(base);
	return left;
}
