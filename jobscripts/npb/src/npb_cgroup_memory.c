#include "npb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 1024 };
/* Version 1 says "no limit" by its largest number of whole pages (mm/page_counter.c). */
static const uint64_t no_limit = UINT64_C(1) << 62;

/* The files of a version; `cache` are lines of memory.stat. */
struct version {
	const char *type; /* of the file system */
	const char *limit, *used;
	const char *cache[2];
};

static const struct version versions[] = {
    {"cgroup",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"cgroup2", "memory.max", "memory.current", {"inactive_file", "active_file"}},
};

/* One hierarchy: where it is mounted, and which of its groups is seen there. */
struct mount {
	char at[PATH], top[PATH];
};

static FILE *open_file(const char *root, const char *folder, const char *name)
{
	char path[3 * PATH];

	snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
	return fopen(path, "re");
}

/* The number in a file, UINT64_MAX for "max" and where there is none. */
static uint64_t number_in(const char *root, const char *folder, const char *name)
{
	uint64_t value = UINT64_MAX;
	FILE *file = open_file(root, folder, name);

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	fclose(file);
	return value;
}

static uint64_t cache_bytes(const char *root, const char *folder, const struct version *version)
{
	FILE *file = open_file(root, folder, "memory.stat");
	char name[64];
	uint64_t value, sum = 0;

	if (!file)
		return 0;
	while (fscanf(file, "%63s %" SCNu64, name, &value) == 2)
		if (!strcmp(name, version->cache[0]) || !strcmp(name, version->cache[1]))
			sum += value;
	fclose(file);
	return sum;
}

/* Of one group. */
static uint64_t free_bytes(const char *root, const char *folder, const struct version *version)
{
	const uint64_t limit = number_in(root, folder, version->limit);
	uint64_t used, cache;

	if (limit >= no_limit)
		return UINT64_MAX;
	used = number_in(root, folder, version->used);
	if (used == UINT64_MAX)
		return limit;
	cache = cache_bytes(root, folder, version);
	used = cache < used ? used - cache : 0;
	return used < limit ? limit - used : 0;
}

/* A word of a list between commas. */
static int has_word(const char *list, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || strchr(",\n", at[length])))
			return 1;
	return 0;
}

/* From a line of mountinfo: ID PARENT DEVICE TOP AT OPTIONS … - TYPE SOURCE OPTIONS (proc(5)). */
static int read_mount(const char *line, const struct version *version, struct mount *mount)
{
	char type[32], options[512];
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*s %*s %*s %1023s %1023s", mount->top, mount->at) != 2 ||
	    sscanf(rest, " - %31s %*s %511s", type, options) != 2 || strcmp(type, version->type))
		return 0;
	return !strcmp(type, "cgroup2") || has_word(options, "memory");
}

static int find_mount(const char *root, const struct version *version, struct mount *mount)
{
	FILE *file = open_file(root, "/proc/self", "mountinfo");
	char line[4 * PATH];
	int found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		found = read_mount(line, version, mount);
	if (file)
		fclose(file);
	return found;
}

/* This process's group: `4:memory:/path`, `0::/path`. */
static int find_group(const char *root, const struct version *version, char *path)
{
	FILE *file = open_file(root, "/proc/self", "cgroup");
	char line[2 * PATH], controllers[512];
	int found = 0;

	while (file && !found && fgets(line, sizeof(line), file)) {
		controllers[0] = '\0';
		if (!strcmp(version->type, "cgroup2"))
			found = sscanf(line, "0::%1023[^\n]", path) == 1;
		else
			found = sscanf(line, "%*d:%511[^:]:%1023[^\n]", controllers, path) == 2 &&
				has_word(controllers, "memory");
	}
	if (file)
		fclose(file);
	return found;
}

/* The group's folder; the mount itself where the group is outside of what is mounted. */
static void folder_of(const struct mount *mount, const char *path, char *folder)
{
	const char *below = path;
	const size_t top = strcmp(mount->top, "/") ? strlen(mount->top) : 0;

	if (top && (strncmp(path, mount->top, top) || !strchr("/", path[top])))
		below = "";
	else
		below += top;
	if (!strcmp(below, "/") || strstr(below, ".."))
		below = "";
	snprintf(folder, 2 * PATH, "%s%s", mount->at, below);
}

static uint64_t free_in(const char *root, const struct version *version, char *where, size_t size)
{
	char path[PATH], folder[2 * PATH];
	struct mount mount;
	uint64_t least = UINT64_MAX;

	if (!find_mount(root, version, &mount) || !find_group(root, version, path))
		return UINT64_MAX;
	folder_of(&mount, path, folder);
	for (;;) {
		const uint64_t here = free_bytes(root, folder, version);

		if (here < least) {
			least = here;
			snprintf(where, size, "%s", folder);
		}
		if (strlen(folder) <= strlen(mount.at) || !strrchr(folder, '/'))
			return least;
		*strrchr(folder, '/') = '\0';
	}
}

uint64_t npb_cgroup_free_bytes(const char *root, char *where, size_t size)
{
	uint64_t least = UINT64_MAX;
	char folder[2 * PATH];

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const uint64_t here = free_in(root, &versions[i], folder, sizeof(folder));

		if (here < least) {
			least = here;
			snprintf(where, size, "%s", folder);
		}
	}
	return least;
}
