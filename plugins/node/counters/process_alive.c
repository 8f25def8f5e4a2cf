#include "counters/process_alive.h"

#include "base/file.h"
#include "base/shortage.h"
#include "counters/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ENVIRONMENT_SIZE 65536

static ssize_t read_file(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? sy_short(errno) : sy_read_fd(fd, text, size);
}

int64_t sy_start_ticks(pid_t pid)
{
	char text[1024];
	struct sy_stat stat;

	ssize_t length = read_file(pid, "stat", text, sizeof(text));

	if (length < 0)
		return sy_is_shortage((int)-length) ? SY_TICKS_NOT_READ : -1;
	if (sy_parse_stat(text, &stat) < 0 || stat.state == 'Z' || stat.state == 'X')
		return -1;
	return stat.starttime;
}

/* Its parent and its name (`size` bytes); 0: no such process. */
static pid_t parent_and_name(pid_t pid, char *name, size_t size)
{
	char text[1024];
	struct sy_stat stat;
	const char *begin, *end;

	if (read_file(pid, "stat", text, sizeof(text)) < 0 || sy_parse_stat(text, &stat) < 0)
		return 0;
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end)
		return 0;
	(void)snprintf(name, size, "%.*s", (int)(end - begin - 1), begin + 1);
	return stat.ppid;
}

pid_t sy_topmost(pid_t pid)
{
	char name[64], above[64];
	pid_t parent = parent_and_name(pid, name, sizeof(name));

	while (parent > 1 && parent_and_name(parent, above, sizeof(above)) > 0 &&
	       strcmp(name, above) == 0) {
		pid = parent;
		parent = parent_and_name(pid, name, sizeof(name));
	}
	return pid;
}

bool sy_has_word(const char *environment, ssize_t length, const char *word)
{
	for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
		if (!strcmp(at, word))
			return true;
	return false;
}

static bool is_marked(pid_t pid, uid_t uid, const char *const *mark, int count, char *text)
{
	char path[32];
	struct stat info;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &info) < 0 || info.st_uid != uid)
		return false;
	length = read_file(pid, "environ", text, ENVIRONMENT_SIZE);
	for (int i = 0; i < count; i++)
		if (!sy_has_word(text, length, mark[i]))
			return false;
	return sy_start_ticks(pid) >= 0;
}

bool sy_marked_process_lives(uid_t uid, const char *const *mark, int count)
{
	cleanup_free char *text = malloc(ENVIRONMENT_SIZE);
	DIR *dir = text && count ? opendir("/proc") : NULL;
	struct dirent *entry;
	bool found = false;
	int64_t pid;

	while (dir && !found && (entry = readdir(dir)))
		found = sy_parse_number(entry->d_name, &pid) == 0 &&
			is_marked((pid_t)pid, uid, mark, count, text);
	if (dir)
		(void)closedir(dir);
	return found;
}
