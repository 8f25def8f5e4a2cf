#include "counters/process_alive.h"

#include "base/file.h"
#include "base/error.h"
#include "base/kernel_uapi.h"
#include "counters/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PART_SIZE 8192 /* longer than any word that is looked for */

bool sy_process_lives(pid_t pid)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {fd, POLLIN, 0};

	if (fd < 0)
		return errno != ESRCH && (kill(pid, 0) == 0 || errno != ESRCH);
	return poll(&ended, 1, 0) <= 0;
}

static ssize_t read_file(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return sy_read_path(path, text, size);
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

/* An environment that is read part by part. */
struct environment {
	char text[PART_SIZE + 1];
	size_t used;
	bool in_long_word; /* its beginning has been let go */
	unsigned found;	   /* a bit for each word */
};

static void compare(struct environment *environment, const char *text, const char *const *word,
		    int count)
{
	for (int i = 0; i < count && !environment->in_long_word; i++)
		if (!strcmp(text, word[i]))
			environment->found |= 1U << i;
	environment->in_long_word = false;
}

/* A variable without its NUL stays in the buffer for the next read. */
static void compare_variables(struct environment *environment, const char *const *word, int count)
{
	const char *at = environment->text, *end = environment->text + environment->used, *nul;

	for (; (nul = memchr(at, '\0', (size_t)(end - at))); at = nul + 1)
		compare(environment, at, word, count);
	environment->used = (size_t)(end - at);
	memmove(environment->text, at, environment->used);
	if (environment->used < PART_SIZE)
		return;
	environment->in_long_word = true;
	environment->used = 0;
}

int sy_environment_has(int fd, const char *const *word, int count)
{
	struct environment environment = {.used = 0};
	off_t offset = 0;
	ssize_t got;

	while ((got = pread(fd, environment.text + environment.used, PART_SIZE - environment.used,
			    offset)) > 0) {
		offset += got;
		environment.used += (size_t)got;
		compare_variables(&environment, word, count);
	}
	environment.text[environment.used] = '\0';
	if (environment.used)
		compare(&environment, environment.text, word, count);
	return offset == 0 ? -1 : environment.found == (1U << count) - 1;
}

static bool is_marked(pid_t pid, uid_t uid, const char *const *mark, int count)
{
	cleanup_close int fd = -1;
	char path[32];
	struct stat info;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &info) < 0 || info.st_uid != uid)
		return false;
	(void)strcat(path, "/environ");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && sy_environment_has(fd, mark, count) == 1 && sy_start_ticks(pid) >= 0;
}

bool sy_marked_process_lives(uid_t uid, const char *const *mark, int count)
{
	cleanup_dir DIR *dir = count ? opendir("/proc") : NULL;
	struct dirent *entry;
	bool found = false;
	int64_t pid;

	while (dir && !found && (entry = readdir(dir)))
		found = sy_parse_number(entry->d_name, &pid) == 0 &&
			is_marked((pid_t)pid, uid, mark, count);
	return found;
}
