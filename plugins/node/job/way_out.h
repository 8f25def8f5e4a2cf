/* Leaving the job's cgroups, so that what we start is neither killed nor accounted with the job. */
#ifndef STEELYARD_JOB_WAY_OUT_H
#define STEELYARD_JOB_WAY_OUT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_WAY_OUT_MAX 48

struct sy_way_out {
	size_t count;
	char paths[SY_WAY_OUT_MAX][320]; /* cgroup.procs files, in the order to try */
};

/* Append MOUNT/PATH/cgroup.procs, MOUNT below /sys/fs/cgroup, of PATH `length` bytes. */
void sy_way_out_add(struct sy_way_out *way, const char *mount, const char *path, size_t length,
		    const char *below);

/* The mount point of a hierarchy of version 1, from /proc/PID/cgroup's second field. */
void sy_way_out_mount(char *mount, size_t size, const char *controllers);

/* The way out of one group, as a line of /proc/PID/cgroup has it: `controllers` is "" in version 2,
 * `path` begins with "/". */
typedef void (*sy_way_out_rule)(struct sy_way_out *way, const char *controllers, const char *path);

/* To the top of every hierarchy: out of whatever the scheduler or its daemon is kept in. */
void sy_way_out_top(struct sy_way_out *way, const char *controllers, const char *path);

/* By this rule out of our own groups; before the fork, since it uses more than system calls. */
void sy_way_out_find(struct sy_way_out *way, sy_way_out_rule rule);

/* The same from a given text of /proc/PID/cgroup. */
void sy_way_out_read(struct sy_way_out *way, const char *cgroups, sy_way_out_rule rule);

/* Go: system calls only. */
void sy_leave_cgroup(const struct sy_way_out *way);

/* Put processes into the group of a cgroup.procs: their children, which are the job's, inherit it.
 */
int sy_join_cgroup(const pid_t *pids, int count, const char *path, struct sy_error *err);

#endif
