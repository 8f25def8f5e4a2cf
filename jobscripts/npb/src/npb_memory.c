/*
 * Memory of the kernels: zeroed, aligned, and counted, so that main finds what was not freed; and
 * whether there is enough of it, also below the limits of control groups.
 */
#define _DEFAULT_SOURCE /* madvise */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "npb.h"

static long allocations;

long npb_count_allocations(void)
{
	return allocations;
}

/* Large blocks begin on pages of 2 MiB, where the kernel has them: fewer pages to look up. */
static void *allocate(size_t total)
{
	enum { LINE = 64, PAGE = 2 << 20 };
	const size_t align = total < 2 * (size_t)PAGE ? LINE : PAGE;
	const size_t rounded = (total + align) / align * align; /* never 0 */
	void *memory = rounded > total ? aligned_alloc(align, rounded) : NULL;

#ifdef MADV_HUGEPAGE
	if (memory && align == PAGE)
		madvise(memory, rounded, MADV_HUGEPAGE);
#endif
	return memory;
}

void *npb_alloc(size_t count, size_t bytes)
{
	const bool fits = bytes == 0 || count <= SIZE_MAX / bytes;
	void *memory = fits ? allocate(count * bytes) : NULL;

	if (!memory) {
		fprintf(stderr, "npb: no memory for %zu times %zu bytes; use a smaller class\n",
			count, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
		exit(2);
	}
	memset(memory, 0, count * bytes);
	allocations++;
	return memory;
}

void npb_free(void *memory)
{
	allocations -= memory != NULL;
	free(memory);
}

/*
 * Limits of memory of the control groups that this process is in: its own, and every one above it
 * (cgroups(7); kernel documentation, cgroup-v1/memory.rst and cgroup-v2.rst).
 */

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
			snprintf(where, size, "%.*s", (int)size - 1, folder);
		}
		if (strlen(folder) <= strlen(mount.at) || !strrchr(folder, '/'))
			return least;
		*strrchr(folder, '/') = '\0';
	}
}

/*
 * Bytes that can be had below the tightest limit, page cache counted as free, for it can be taken
 * back; UINT64_MAX without a limit. `where`: that group's folder. `root`: "", or a recorded tree.
 */
static uint64_t npb_cgroup_free_bytes(const char *root, char *where, size_t size)
{
	uint64_t least = UINT64_MAX;
	char folder[2 * PATH];

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const uint64_t here = free_in(root, &versions[i], folder, sizeof(folder));

		if (here < least) {
			least = here;
			snprintf(where, size, "%.*s", (int)size - 1, folder);
		}
	}
	return least;
}

enum { WHERE = 160 };

/* What a rank may take, and what says so. */
struct room {
	uint64_t bytes;
	char where[WHERE];
};

/* Bytes that can be had without swapping (MemAvailable, proc(5)); UINT64_MAX when not known. */
static uint64_t available_bytes(const char *root)
{
	uint64_t kib = UINT64_MAX;
	char line[1024];
	FILE *file;

	snprintf(line, sizeof(line), "%s/proc/meminfo", root);
	file = fopen(line, "re");
	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	}
	fclose(file);
	return kib == UINT64_MAX ? kib : kib * 1024;
}

/* The limit of one process (ulimit -v), UINT64_MAX when there is none. */
static uint64_t limit_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static int ranks_on_node(MPI_Comm comm)
{
	MPI_Comm node;
	int ranks;

	MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &ranks);
	MPI_Comm_free(&node);
	return ranks;
}

static void tighten(struct room *room, uint64_t bytes, const char *where)
{
	if (bytes >= room->bytes)
		return;
	room->bytes = bytes;
	snprintf(room->where, sizeof(room->where), "%s", where);
}

/* Memory and the group's limits are shared with the node's other ranks, for mpirun starts them all
 * in one group. NPB_ROOT: a recorded tree instead of this machine's. */
static struct room room_of(MPI_Comm comm)
{
	const uint64_t ranks = (uint64_t)ranks_on_node(comm);
	const char *root = getenv("NPB_ROOT");
	struct room room = {.bytes = UINT64_MAX};
	char group[WHERE - 32] = "", where[WHERE];

	root = root ? root : "";
	tighten(&room, available_bytes(root) / ranks, "available on the node");
	tighten(&room, limit_bytes(), "limit of ulimit -v");
	tighten(&room, npb_cgroup_free_bytes(root, group, sizeof(group)) / ranks, "");
	if (!room.where[0]) {
		snprintf(where, sizeof(where), "left by the limit of %s", group);
		snprintf(room.where, sizeof(room.where), "%s", where);
	}
	return room;
}

/* The room of the rank that has the least. */
static void smallest(struct room *room, const struct npb_run *run)
{
	struct {
		double bytes;
		int rank;
	} mine = {(double)room->bytes, run->rank}, least;

	MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, run->comm);
	MPI_Bcast(room, sizeof(*room), MPI_BYTE, least.rank, run->comm);
}

bool npb_check_memory(const struct npb_kernel *kernel, const struct npb_run *run, char *message,
		      size_t size)
{
	const uint64_t needed = kernel->memory_bytes(run->class, run->ranks);
	struct room room = room_of(run->comm);

	smallest(&room, run);
	if (needed <= room.bytes)
		return true;
	snprintf(message, size,
		 "class %c on %d ranks needs %.1f GB of memory per rank, found %.1f GB (%s): use "
		 "more nodes or a smaller class",
		 run->class_name, run->ranks, (double)needed * 1e-9, (double)room.bytes * 1e-9,
		 room.where);
	return false;
}
