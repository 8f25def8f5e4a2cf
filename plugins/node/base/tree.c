#include "base/tree.h"

#include "base/kernel.h"
#include "base/shortage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct sy_names *names, const char *name)
{
	char **more = reallocarray(names->name, names->count + 1, sizeof(*more));

	if (!more)
		return sy_short(ENOMEM);
	names->name = more;
	more[names->count] = strdup(name);
	if (!more[names->count])
		return sy_short(ENOMEM);
	names->count++;
	return 0;
}

int sy_list_at(int root, const char *path, struct sy_names *names)
{
	int fd = sy_open_at(root, path);
	struct dirent *entry;
	int result = 0;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		result = sy_short(errno);
		(void)close(fd);
		return result;
	}
	while (!result && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			result = add_name(names, entry->d_name);
	(void)closedir(dir);
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_version);
	return result;
}

/* A descriptor of the thing itself, a link not followed. */
static int open_path(int root, const char *path, uint64_t flags)
{
	struct sy_open_how how = {.flags = O_PATH | O_CLOEXEC | flags,
				  .resolve = SY_RESOLVE_IN_ROOT};
	long fd;

	while (*path == '/')
		path++;
	fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, *path ? path : ".", (int)how.flags);
	return fd < 0 ? sy_short(errno) : (int)fd;
}

ssize_t sy_link_at(int root, const char *path, char *buffer, size_t size)
{
	cleanup_close int fd = open_path(root, path, O_NOFOLLOW);
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
	cleanup_close int fd = open_path(root, path, 0);

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
