/* More ways to look into a root folder (base/file.h): lists of names, symbolic links, numbers.
 *
 * What a machine tells by an instruction or a system call and not by a file can stand in a recorded
 * tree under /.steelyard: `cpuid-hypervisor` (the vendor signature of CPUID leaf 0x40000000),
 * `netdev-kinds` (lines "DEVICE KIND"). docs/probe.md says how such a tree is recorded. */
#ifndef STEELYARD_BASE_TREE_H
#define STEELYARD_BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

/* Names in a folder, without those that begin with a dot. */
struct sy_names {
	char **name;
	size_t count;
};

static inline void sy_cleanup_names(struct sy_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
}

#define cleanup_names __attribute__((cleanup(sy_cleanup_names)))

/* List a folder, numbers inside names in their order ("cpu2" before "cpu10"): 0, or -errno. The
 * list is to be declared `cleanup_names struct sy_names n = {0}`. */
int sy_list_at(int root, const char *path, struct sy_names *names);

/* Where a symbolic link leads, not followed: its length, or -errno; -ENAMETOOLONG when cut. */
ssize_t sy_link_at(int root, const char *path, char *buffer, size_t size);

/* The last part of the path a symbolic link leads to, as sysfs names drivers: length, or -errno. */
ssize_t sy_link_name_at(int root, const char *path, char *buffer, size_t size);

/* Is there anything of that name? Links are followed. */
bool sy_exists_at(int root, const char *path);

/* A file that holds one whole number, decimal or 0x…: 0, or -errno; -EINVAL when it is no number.
 */
int sy_read_int_at(int root, const char *path, int64_t *value);

/* Read a file of any size up to `limit`, allocated: NULL with errno set. Free it. */
char *sy_read_all_at(int root, const char *path, size_t limit);

/* Is `root` the machine's own "/", so that instructions and system calls tell of the same thing? */
bool sy_root_is_machine(int root);

#endif
