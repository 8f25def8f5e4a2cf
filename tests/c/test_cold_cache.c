/* Cold caches: a file of ours leaves the memory; what cannot be dropped is an error. */
#include "tap.h"

#include "base/file.h"
#include "program/cold_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#define PAGES 256

/* How many pages of a file are in memory: mincore(2). */
static int pages_in_memory(int fd)
{
	size_t size = PAGES * (size_t)sysconf(_SC_PAGESIZE);
	unsigned char there[PAGES];
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	int count = 0;

	if (map == MAP_FAILED || mincore(map, size, there) < 0)
		return -1;
	for (int i = 0; i < PAGES; i++)
		count += there[i] & 1;
	(void)munmap(map, size);
	return count;
}

static int write_pages(int fd)
{
	static char page[65536];
	int failed = 0;

	memset(page, 'x', sizeof(page));
	for (int i = 0; i < PAGES && !failed; i++)
		failed = sy_write_all(fd, page, (size_t)sysconf(_SC_PAGESIZE));
	return failed;
}

static void test_a_file_leaves_memory(void)
{
	char path[] = "build/cache.XXXXXX";
	struct sy_error err = {""};
	struct statfs kind;
	json_t *answer = NULL;
	cleanup_close int fd = mkstemp(path), root = sy_root_open("/", &err);

	if (geteuid() != 0) {
		ok(true, "# SKIP dropping caches needs root");
		return;
	}
	ok(fd >= 0 && fstatfs(fd, &kind) == 0 && kind.f_type != TMPFS_MAGIC, "a file on a disk");
	ok(write_pages(fd) == 0 && pages_in_memory(fd) == PAGES, "written, and not yet on it");
	if (ok(sy_cache_drop(root, 0, false, &answer, &err) == 0, "cold %s", err.text)) {
		is_int(pages_in_memory(fd), 0, "it is gone from memory");
		is_string(json_string_value(json_object_get(answer, "requested")), "cold", "asked");
		is_string(json_string_value(json_array_get(json_object_get(answer, "done"), 0)),
			  "page cache", "and done");
		ok(json_is_integer(json_object_get(answer, "cached_after_bytes")),
		   "what is left is told");
	}
	json_decref(answer);
	(void)unlink(path);
}

/* A recorded tree of a node; `files` in kB stay after dropping. */
static int make_tree(const char *dir, const char *drop_caches, int cached_kb, int mapped_kb)
{
	char command[512];

	(void)snprintf(command, sizeof(command),
		       "mkdir -p %s/proc/sys/vm && printf 'MemTotal: 9 kB\\nCached: %d kB\\nShmem: "
		       "1000 kB\\nMapped: %d kB\\nDirty: 0 kB\\nWriteback: 0 kB\\n' > "
		       "%s/proc/meminfo && %s %s/proc/sys/vm/drop_caches",
		       dir, cached_kb, mapped_kb, dir, drop_caches, dir);
	return system(command);
}

static void test_tree(const char *drop_caches, int cached_kb, int mapped_kb, const char *message)
{
	char dir[] = "build/tree.XXXXXX", command[64];
	struct sy_error err = {""};
	json_t *answer = NULL;
	cleanup_close int root = -1;

	if (!ok(mkdtemp(dir) && make_tree(dir, drop_caches, cached_kb, mapped_kb) == 0, "a tree"))
		return;
	root = sy_root_open(dir, &err);
	if (!message)
		ok(sy_cache_drop(root, 0, false, &answer, &err) == 0, "little may stay %s",
		   err.text);
	else
		ok(sy_cache_drop(root, 0, false, &answer, &err) < 0 && strstr(err.text, message),
		   "%s: %s", message, err.text);
	json_decref(answer);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	ok(system(command) == 0, "removed");
}

int main(void)
{
	test_a_file_leaves_memory();
	test_tree("touch", 200000, 0, NULL);
	test_tree("touch", 2000000, 1900000, NULL);
	test_tree("touch", 2000000, 0, "2046 MB of 2046 MB of files stayed in memory");
	test_tree("true", 200000, 0, "/proc/sys/vm/drop_caches: No such file");
	test_tree("mkdir", 200000, 0, "/proc/sys/vm/drop_caches: Is a directory");
	return done_testing();
}
