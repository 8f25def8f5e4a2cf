/* Reading small kernel files, under a root folder that tests may move; folders that only root can
 * write into; locks.
 *
 * A root descriptor is that of "/" or of a recorded tree. Paths are given with their leading
 * slash and are resolved inside the root, absolute symbolic links included (openat2,
 * RESOLVE_IN_ROOT), so that a recorded tree never leads back to the machine's own files. */
#ifndef STEELYARD_BASE_FILE_H
#define STEELYARD_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"

static inline void sy_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void sy_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void sy_cleanup_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Run when the variable goes out of scope: initialise it where it is declared. */
#define cleanup_free  __attribute__((cleanup(sy_cleanup_free)))
#define cleanup_close __attribute__((cleanup(sy_cleanup_close)))
#define cleanup_dir   __attribute__((cleanup(sy_cleanup_dir)))

/* A descriptor of the root folder, or -1. */
int sy_root_open(const char *dir, struct sy_error *err);

/* Open `path` ("/proc/stat") for reading inside the root: a descriptor, or -errno. */
int sy_open_at(int root, const char *path);

/* Read a small file whole: its length, NUL-terminated and cut at size - 1; or -errno. */
ssize_t sy_read_at(int root, const char *path, char *buffer, size_t size);

/* The same from the start of an open descriptor (pread), for files that are read again and again.
 */
ssize_t sy_read_fd(int fd, char *buffer, size_t size);

/* The same for a path that is resolved as usual ("/proc/self/status"). */
ssize_t sy_read_path(const char *path, char *buffer, size_t size);

/* The same by one system call: the kernel's files of counters come whole. */
ssize_t sy_read_counters(int fd, char *buffer, size_t size);

/* The first line of a file without its newline: its length, or -errno. */
ssize_t sy_read_line_at(int root, const char *path, char *buffer, size_t size);

/* struct linux_dirent64 of getdents64(2), for callers that may not allocate as readdir(3) does. */
struct sy_entry64 {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* "n.7.json" ends with ".json"; nothing before it is not enough. */
bool sy_ends_with(const char *text, const char *end);

/* Write all of `size` bytes: 0, or -errno. */
int sy_write_all(int fd, const char *data, size_t size);

/* An exclusive lock of flock(2), for which it waits at most so long; whether it has it. */
bool sy_lock(int fd, int patience_ms);

/* --- lists of names, symbolic links, numbers below a root folder ---
 *
 * What a machine reports by an instruction or a system call and not by a file can stand in a
 * recorded tree under /.steelyard: `cpuid-hypervisor` (the vendor signature of CPUID leaf
 * 0x40000000), `netdev-kinds` (lines "DEVICE KIND"). docs/probe.md says how such a tree is
 * recorded. */

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

/* True when `root` is the machine's own "/", so that instructions and system calls describe the
 * same machine. */
bool sy_root_is_machine(int root);

/* --- folders that root writes into while users look on: nothing a user names is followed --- */

/* A word that may be a file's name: not empty, no '/', no control character, not beginning with a
 * dot, at most 200 bytes. */
bool sy_is_file_word(const char *word);

/* 0: the folder is root's or ours, and nobody else can put anything into it. `what`: its name in
 * the message. */
int sy_folder_check(int fd, const char *what, struct sy_error *err);

/* Open the folder `name` of `run_dir`, made first if `make`: a descriptor, or -1. */
int sy_folder_below(const char *run_dir, const char *name, bool make, struct sy_error *err);

/* Make the node's run folder (control sockets, states, the log) when it is missing: /run is empty
 * after a boot. -1 when another user than root, or us, could write into it. */
int sy_run_dir_make(const char *run_dir, struct sy_error *err);

#endif
