#include "bpf/held.h"

#include "base/file.h"
#include "bpf/call.h"
#include "bpf/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the names that /proc/PID/fd has (bpf-map, bpf-prog; bpf_link, bpf-link in newer kernels), and
 * as what it is asked for by its number. */
static const struct {
	const char *name;
	enum sy_bpf_object kind;
} kinds[] = {{"map", SY_BPF_MAP}, {"prog", SY_BPF_PROGRAM}, {"link", SY_BPF_LINK}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *held_folder(void)
{
	static char name[64];

	(void)snprintf(name, sizeof(name), "held-%s", sy_bpf_folder());
	return name;
}

static int path_of(char path[SY_BPF_PATH], const char *base, const char *folder)
{
	return snprintf(path, SY_BPF_PATH, "%s/%s", base, folder) < SY_BPF_PATH ? 0 : -ENAMETOOLONG;
}

static int open_folder(const char *base, const char *folder)
{
	char path[SY_BPF_PATH];
	int result = path_of(path, base, folder);

	if (result == 0)
		result = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return result < 0 && result != -ENAMETOOLONG ? -errno : result;
}

/* "KIND NUMBER", or an empty text. */
static void describe(int fd, char *text, size_t size)
{
	char link[64], name[64] = "";
	uint32_t number;

	text[0] = '\0';
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, name, sizeof(name) - 1) < 0 || sy_bpf_number_of(fd, &number) < 0)
		return;
	for (size_t i = 0; i < KINDS; i++)
		if (strstr(name, kinds[i].name))
			(void)snprintf(text, size, "%s %u", kinds[i].name, number);
}

/* What stands there: a descriptor, or -errno. */
static int open_described(int folder, const char *entry)
{
	char text[64] = "", *number;
	ssize_t length = readlinkat(folder, entry, text, sizeof(text) - 1);

	if (length < 0)
		return -errno;
	number = strchr(text, ' ');
	for (size_t i = 0; number && i < KINDS; i++)
		if (!strncmp(text, kinds[i].name, (size_t)(number - text)))
			return sy_bpf_get_object(kinds[i].kind,
						 (uint32_t)strtoul(number + 1, NULL, 10));
	return -EINVAL;
}

static bool is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Of every entry, until one returns less than 0: how many there were, or that. */
static int each(int folder, int (*do_one)(void *context, int folder, const char *name),
		void *context)
{
	const struct dirent *entry;
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	int result = copy < 0 ? -errno : 0;
	DIR *all = copy < 0 ? NULL : fdopendir(copy);

	while (all && result >= 0 && (entry = readdir(all)))
		if (is_name(entry)) {
			result = do_one(context, folder, entry->d_name);
			count++;
		}
	if (all)
		(void)closedir(all);
	return result < 0 ? result : count;
}

/* --- held --- */

struct holding {
	struct sy_bpf_holder *holder;
	const char *base;
};

static int keep(struct sy_bpf_holder *holder, int fd)
{
	if (fd >= 0 && holder->count == SY_BPF_MOST_HELD) {
		(void)close(fd);
		return -ENOSPC;
	}
	if (fd >= 0)
		holder->fd[holder->count++] = fd;
	return fd;
}

static int hold_pinned(void *context, int folder, const char *name)
{
	const struct holding *holding = context;
	int fd = keep(holding->holder, sy_bpf_open(holding->base, name));
	char text[64];

	(void)folder;
	if (fd < 0)
		return fd;
	describe(fd, text, sizeof(text));
	return text[0] && symlinkat(text, holding->holder->folder, name) == 0 ? 0 : -EIO;
}

/* What another one holds. */
static int hold_too(void *context, int folder, const char *name)
{
	const struct holding *holding = context;

	return keep(holding->holder, open_described(folder, name));
}

static int open_for_holding(const char *base)
{
	char path[SY_BPF_PATH];
	int folder;

	if (path_of(path, base, held_folder()) < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -errno;
	folder = open_folder(base, held_folder());
	if (folder >= 0)
		(void)flock(folder, LOCK_SH);
	return folder;
}

static void close_all(struct sy_bpf_holder *holder)
{
	for (int i = 0; i < holder->count; i++)
		(void)close(holder->fd[i]);
	if (holder->folder >= 0)
		(void)close(holder->folder);
	*holder = (struct sy_bpf_holder)SY_BPF_HOLDS_NOTHING;
}

void sy_bpf_let_go(struct sy_bpf_holder *holder, const char *base)
{
	if (holder->folder < 0)
		return;
	close_all(holder);
	if (!sy_bpf_is_held(base))
		sy_bpf_unpin(base, held_folder());
}

static int hold_all(struct holding *holding, bool too)
{
	cleanup_close int pinned = open_folder(holding->base, sy_bpf_folder());

	holding->holder->folder = open_for_holding(holding->base);
	if (holding->holder->folder < 0)
		return holding->holder->folder;
	return too ? each(holding->holder->folder, hold_too, holding)
		   : each(pinned, hold_pinned, holding);
}

int sy_bpf_hold(struct sy_bpf_holder *holder, const char *base, struct sy_error *err)
{
	struct holding holding = {holder, base};
	bool too = sy_bpf_is_held(base);
	int result;

	*holder = (struct sy_bpf_holder)SY_BPF_HOLDS_NOTHING;
	if (!too) /* of one that went without a word */
		sy_bpf_unpin(base, held_folder());
	result = hold_all(&holding, too);
	if (result > 0)
		return 0;
	sy_bpf_let_go(holder, base);
	return sy_fail_errno(err, result ? -result : ENOENT, "cannot hold what is in %s", base);
}

bool sy_bpf_is_held(const char *base)
{
	return sy_bpf_is_used(base, held_folder());
}

/* --- pinned again --- */

static int pin_one(void *context, int folder, const char *name)
{
	const char *base = context;
	cleanup_close int fd = open_described(folder, name);
	char path[SY_BPF_PATH];

	if (fd < 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/" SY_BPF_LOADING "/%s", base, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return sy_bpf_pin(fd, path);
}

/* All of it appears at once, under its name. */
static bool pin_all(const char *base, int held)
{
	char loading[SY_BPF_PATH], folder[SY_BPF_PATH];

	if (path_of(loading, base, SY_BPF_LOADING) < 0 ||
	    path_of(folder, base, sy_bpf_folder()) < 0)
		return false;
	sy_bpf_unpin(base, SY_BPF_LOADING);
	if (mkdir(loading, 0700) == 0 && each(held, pin_one, (void *)base) > 0 &&
	    rename(loading, folder) == 0)
		return true;
	sy_bpf_unpin(base, SY_BPF_LOADING);
	return false;
}

static bool is_pinned(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");

	return jobs >= 0;
}

bool sy_bpf_pin_held(const char *base)
{
	cleanup_close int held = -1;

	if (is_pinned(base))
		return true;
	if (!sy_bpf_is_held(base))
		return false;
	held = open_folder(base, held_folder());
	return held >= 0 && pin_all(base, held);
}

bool sy_bpf_is_ready(const char *base, int patience_ms)
{
	cleanup_close int lock = -1;

	if (is_pinned(base))
		return true;
	if (!sy_bpf_is_held(base))
		return false;
	lock = sy_bpf_lock(base, false, patience_ms, NULL);
	return lock >= 0 && sy_bpf_pin_held(base);
}

int sy_bpf_open_held_map(const char *base, const char *name)
{
	cleanup_close int held = sy_bpf_is_held(base) ? open_folder(base, held_folder()) : -ENOENT;

	return held < 0 ? held : open_described(held, name);
}
