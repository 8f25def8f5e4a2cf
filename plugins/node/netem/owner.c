/* Does the owner of a condition still live? proc(5): /proc/PID/stat, /proc/PID/ns/net. */
#include "netem/state.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static void read_boot_id(char *text, size_t size)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || sy_read_line_at(root, BOOT_ID, text, size) < 0)
		text[0] = '\0';
}

/* Field 22 of /proc/PID/stat; -1: no such process, or it is dead and only waited for. */
static int64_t start_ticks(pid_t pid)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[40], text[1024], *after;
	long long ticks;
	char state;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (root < 0 || sy_read_line_at(root, path, text, sizeof(text)) < 0)
		return -1;
	after = strrchr(text, ')');
	if (!after || sscanf(after + 1,
			     " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			     "%*d %*d %lld",
			     &state, &ticks) != 2)
		return -1;
	return state == 'Z' || state == 'X' ? -1 : ticks;
}

static int64_t namespace_of(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (int64_t)info.st_ino : 0;
}

/* A namespace lives as long as a process or a mount (ip-netns(8)) holds it. */
static bool held(const char *folder, const char *tail, int64_t inode)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = false;
	char path[320];

	while (dir && !found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", folder, entry->d_name, tail);
		found = entry->d_name[0] != '.' && namespace_of(path) == inode;
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

void sy_state_own(json_t *state, pid_t watch)
{
	char boot[64];

	read_boot_id(boot, sizeof(boot));
	(void)json_object_set_new(state, "boot_id", json_string(boot));
	(void)json_object_set_new(state, "network_namespace",
				  json_integer(namespace_of("/proc/self/ns/net")));
	(void)json_object_set_new(state, "watch_pid", json_integer(watch));
	(void)json_object_set_new(state, "watch_start_ticks",
				  watch ? json_integer(start_ticks(watch)) : json_null());
}

static int64_t number(const json_t *state, const char *key)
{
	return json_integer_value(json_object_get(state, key));
}

enum sy_owner sy_state_owner(const json_t *state)
{
	const char *boot = json_string_value(json_object_get(state, "boot_id"));
	int64_t inode = number(state, "network_namespace");
	pid_t watch = (pid_t)number(state, "watch_pid");
	char now[64];
	int64_t ticks;

	read_boot_id(now, sizeof(now));
	if (!boot || strcmp(boot, now))
		return SY_OWNER_AND_KERNEL_GONE;
	if (inode != namespace_of("/proc/self/ns/net"))
		return held("/proc", "/ns/net", inode) || held("/run/netns", "", inode)
			   ? SY_OWNER_NOT_HERE
			   : SY_OWNER_AND_KERNEL_GONE;
	if (!watch)
		return SY_OWNER_LIVES;
	ticks = start_ticks(watch);
	return ticks < 0 || ticks != number(state, "watch_start_ticks") ? SY_OWNER_GONE
									: SY_OWNER_LIVES;
}
