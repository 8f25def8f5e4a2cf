#include "base/file.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel_uapi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int sy_root_open(const char *dir, struct sy_error *err)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open the root folder %s", dir);
	return fd;
}

/* Kernels before 5.6 (RHEL 8) have no openat2; a plain openat is the same where root is "/". */
static int open_below(int root, const char *path, uint64_t flags)
{
	struct sy_open_how how = {.flags = O_CLOEXEC | flags, .resolve = SY_RESOLVE_IN_ROOT};
	long fd;

	while (*path == '/')
		path++;
	fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, *path ? path : ".", (int)how.flags);
	return fd < 0 ? sy_count_shortage(errno) : (int)fd;
}

int sy_open_at(int root, const char *path)
{
	return open_below(root, path, O_RDONLY | O_NONBLOCK);
}

ssize_t sy_read_fd(int fd, char *buffer, size_t size)
{
	size_t used = 0;

	while (used < size - 1) {
		ssize_t got = pread(fd, buffer + used, size - 1 - used, (off_t)used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	return (ssize_t)used;
}

ssize_t sy_read_path(const char *path, char *buffer, size_t size)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? sy_count_shortage(errno) : sy_read_fd(fd, buffer, size);
}

ssize_t sy_read_counters(int fd, char *buffer, size_t size)
{
	ssize_t got = pread(fd, buffer, size - 1, 0);

	if (got < 0)
		return -errno;
	buffer[got] = '\0';
	return got;
}

ssize_t sy_read_at(int root, const char *path, char *buffer, size_t size)
{
	cleanup_close int fd = sy_open_at(root, path);

	buffer[0] = '\0';
	return fd < 0 ? fd : sy_read_fd(fd, buffer, size);
}

ssize_t sy_read_line_at(int root, const char *path, char *buffer, size_t size)
{
	ssize_t length = sy_read_at(root, path, buffer, size);

	if (length < 0)
		return length;
	buffer[strcspn(buffer, "\n")] = '\0';
	return (ssize_t)strlen(buffer);
}

bool sy_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length > tail && !strcmp(text + length - tail, end);
}

int sy_write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

bool sy_lock(int fd, int patience_ms)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + patience_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) ||
		    sy_now_ms(CLOCK_MONOTONIC) >= until_ms)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct sy_names *names, const char *name)
{
	char **more = reallocarray(names->name, names->count + 1, sizeof(*more));

	if (!more)
		return sy_count_shortage(ENOMEM);
	names->name = more;
	more[names->count] = strdup(name);
	if (!more[names->count])
		return sy_count_shortage(ENOMEM);
	names->count++;
	return 0;
}

int sy_list_at(int root, const char *path, struct sy_names *names)
{
	int fd = sy_open_at(root, path);
	cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int result = 0;

	if (fd < 0)
		return fd;
	if (!dir) {
		result = sy_count_shortage(errno);
		(void)close(fd);
		return result;
	}
	while (!result && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			result = add_name(names, entry->d_name);
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_version);
	return result;
}

ssize_t sy_link_at(int root, const char *path, char *buffer, size_t size)
{
	cleanup_close int fd = open_below(root, path, O_PATH | O_NOFOLLOW);
	ssize_t length;

	buffer[0] = '\0';
	if (fd < 0)
		return fd;
	length = readlinkat(fd, "", buffer, size);
	if (length < 0 || (size_t)length >= size) {
		int error = length < 0 ? errno : ENAMETOOLONG;

		buffer[0] = '\0';
		/* An empty name means the descriptor itself: what is no link is not "absent". */
		return error == ENOENT ? -EINVAL : -error;
	}
	buffer[length] = '\0';
	return length;
}

ssize_t sy_link_name_at(int root, const char *path, char *buffer, size_t size)
{
	char target[512];
	ssize_t length = sy_link_at(root, path, target, sizeof(target));
	const char *name;

	buffer[0] = '\0';
	if (length < 0)
		return length;
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	if (strlen(name) >= size)
		return -ENAMETOOLONG;
	strcpy(buffer, name);
	return (ssize_t)strlen(buffer);
}

bool sy_exists_at(int root, const char *path)
{
	cleanup_close int fd = open_below(root, path, O_PATH);

	return fd >= 0;
}

int sy_read_int_at(int root, const char *path, int64_t *value)
{
	char text[64], *end;
	ssize_t length = sy_read_line_at(root, path, text, sizeof(text));
	long long number;

	if (length < 0)
		return (int)length;
	errno = 0;
	number = strtoll(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	if (errno || end == text || *end)
		return -EINVAL;
	*value = number;
	return 0;
}

char *sy_read_all_at(int root, const char *path, size_t limit)
{
	cleanup_close int fd = sy_open_at(root, path);
	cleanup_free char *buffer = NULL;
	size_t size = 4096, used = 0;
	char *result;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	for (;;) {
		char *more = realloc(buffer, size);
		ssize_t got;

		if (!more)
			return NULL;
		buffer = more;
		got = read(fd, buffer + used, size - 1 - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		used += (size_t)got;
		if (got == 0 || used >= limit)
			break;
		if (used == size - 1)
			size *= 2;
	}
	buffer[used] = '\0';
	result = buffer;
	buffer = NULL;
	return result;
}

bool sy_root_is_machine(int root)
{
	struct stat ours, given;

	return stat("/", &ours) == 0 && fstat(root, &given) == 0 && ours.st_dev == given.st_dev &&
	       ours.st_ino == given.st_ino;
}

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
