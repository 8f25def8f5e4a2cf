/*
 * Limits of memory of the control groups that this process is in: its own, and every one above it
 * (cgroups(7); kernel documentation, cgroup-v1/memory.rst and cgroup-v2.rst).
 */
#ifndef NPB_CGROUP_H
#define NPB_CGROUP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that can be had below the tightest limit, page cache counted as free, for it can be taken
 * back; UINT64_MAX without a limit. `where`: that group's folder. `root`: "", or a recorded tree.
 */
uint64_t npb_cgroup_free_bytes(const char *root, char *where, size_t size);

#endif
