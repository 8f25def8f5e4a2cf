#include "bpf/place.h"

#include "base/file.h"
#include "bpf/call.h"
#include "bpf/groups.h"
#include "bpf/held.h"
#include "bpf/job.h"
#include "bpf/layout.h"
#include "layout_hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
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

int sy_bpf_use(const char *base)
{
	char path[SY_BPF_PATH];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", base, sy_bpf_folder()) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)flock(fd, LOCK_SH);
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

/* Of a job: who still has to do with it. */
struct holders {
	uint64_t tasks, keepers;
};

/* A job's map can be opened only by its number. 0; 1: there is none; -1: it cannot be read. */
static int read_job(int jobs, uint64_t id, struct holders *holders)
{
	uint32_t number;
	cleanup_close int map = -1;
	struct sy_bpf_job *job;

	if (sy_bpf_lookup(jobs, &id, &number) < 0)
		return 1;
	map = sy_bpf_get_by_number(number);
	job = map < 0 ? MAP_FAILED : mmap(NULL, sizeof(*job), PROT_READ, MAP_SHARED, map, 0);
	if (job == MAP_FAILED)
		return -1;
	*holders = (struct holders){job->tasks, job->keepers};
	(void)munmap(job, sizeof(*job));
	return 0;
}

static bool has_keeper(int jobs, uint64_t id)
{
	struct holders job = {.keepers = 1};

	return read_job(jobs, id, &job) != 1 && job.keepers > 0;
}

/* Tasks whose ends the kernel did not show would be known until another has their address. */
static void forget_tasks(const char *base, uint64_t job)
{
	cleanup_close int tasks = sy_bpf_open(base, "tasks");
	struct sy_bpf_member member;
	uint64_t key, next;
	bool more = tasks >= 0 && sy_bpf_next_key(tasks, NULL, &key) == 0;

	while (more) {
		more = sy_bpf_next_key(tasks, &key, &next) == 0;
		if (sy_bpf_lookup(tasks, &key, &member) == 0 && member.job == job)
			(void)sy_bpf_delete(tasks, &key);
		key = next;
	}
}

void sy_bpf_forget(const char *base, uint64_t job)
{
	/* Counted no more; then its timer, before what that reads. */
	static const char *const maps[] = {"jobs", "tickers", "queues", "lists"};
	struct holders known = {.tasks = 1}; /* may have some */

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		cleanup_close int map = sy_bpf_open(base, maps[i]);

		if (map >= 0 && i == 0)
			(void)read_job(map, job, &known);
		if (map >= 0)
			(void)sy_bpf_delete(map, &job);
	}
	sy_bpf_forget_groups(base, job);
	if (known.tasks || known.keepers)
		forget_tasks(base, job);
}

static void forget_jobs(const char *base, int jobs)
{
	uint64_t id, *after = NULL, kept;

	while (sy_bpf_next_key(jobs, after, &id) == 0) {
		if (has_keeper(jobs, id)) {
			kept = id;
			after = &kept;
			continue;
		}
		sy_bpf_forget(base, id);
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

int sy_bpf_count_tasks(const char *base)
{
	cleanup_close int tasks = sy_bpf_open(base, "tasks");

	return tasks < 0 ? -1 : count_keys(tasks);
}

static long long memory_of(int map)
{
	char path[64], text[1024];
	const char *found;
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || sy_read_fd(fd, text, sizeof(text)) <= 0)
		return 0;
	found = strstr(text, "memlock:");
	return found ? strtoll(found + strlen("memlock:"), NULL, 10) : 0;
}

/* Of the maps of each job, which a map of maps has. */
static long long memory_within(int outer)
{
	uint64_t id, before, *after = NULL;
	uint32_t number;
	long long sum = 0;

	while (sy_bpf_next_key(outer, after, &id) == 0) {
		cleanup_close int map =
		    sy_bpf_lookup(outer, &id, &number) < 0 ? -1 : sy_bpf_get_by_number(number);

		sum += map < 0 ? 0 : memory_of(map);
		before = id;
		after = &before;
	}
	return sum;
}

long long sy_bpf_memory(const char *base)
{
	static const char *const maps[] = {"jobs",  "queues",	"lists", /* of maps */
					   "tasks", "requests", "groups",
					   "marks", "unread",	"tickers"};
	long long sum = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		int pinned = sy_bpf_open(base, maps[i]);
		cleanup_close int map = pinned < 0 ? sy_bpf_open_held_map(base, maps[i]) : pinned;

		sum += map < 0 ? 0 : memory_of(map);
		sum += map >= 0 && i < SY_BPF_MAPS ? memory_within(map) : 0;
	}
	return sum;
}

bool sy_bpf_is_used(const char *base, const char *folder)
{
	char path[SY_BPF_PATH];
	cleanup_close int fd = -1;

	if (snprintf(path, sizeof(path), "%s/%s", base, folder) >= (int)sizeof(path))
		return true;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* Of other layouts: an older program of ours goes on for its jobs; what is left of one that was
 * being loaded goes at once. */
static void sweep_others(const char *base)
{
	const struct dirent *entry;
	DIR *all = opendir(base);

	while (all && (entry = readdir(all))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, sy_bpf_folder()))
			continue;
		if (!sy_bpf_is_used(base, entry->d_name))
			sy_bpf_unpin(base, entry->d_name);
	}
	if (all)
		(void)closedir(all);
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

int sy_bpf_forget_dead(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");

	if (jobs < 0)
		return 0;
	forget_jobs(base, jobs);
	return count_keys(jobs);
}

void sy_bpf_sweep(const char *base)
{
	if (sy_bpf_forget_dead(base) == 0)
		sy_bpf_unpin(base, sy_bpf_folder());
	sweep_others(base);
}
