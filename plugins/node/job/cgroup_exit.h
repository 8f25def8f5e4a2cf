/* Which cgroups a process must leave so that nothing that ends or accounts a job's cgroup reaches
 * it, and moving processes between cgroups. */
#ifndef STEELYARD_JOB_CGROUP_EXIT_H
#define STEELYARD_JOB_CGROUP_EXIT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_EGRESS_MAX 48

struct sy_egress {
	size_t count;
	char paths[SY_EGRESS_MAX][320]; /* cgroup.procs files, in the order to try */
};

/* Append MOUNT/PATH/cgroup.procs, MOUNT below /sys/fs/cgroup, of PATH `length` bytes. */
void sy_egress_add(struct sy_egress *egress, const char *mount, const char *path, size_t length,
		   const char *below);

/* The mount point of a hierarchy of version 1, from /proc/PID/cgroup's second field. */
void sy_egress_mount(char *mount, size_t size, const char *controllers);

/* The way out of one group, as a line of /proc/PID/cgroup has it: `controllers` is "" in version 2,
 * `path` begins with "/". */
typedef void (*sy_egress_rule)(struct sy_egress *egress, const char *controllers, const char *path);

/* To the top of every hierarchy: out of whatever the scheduler or its daemon is kept in. */
void sy_egress_to_top(struct sy_egress *egress, const char *controllers, const char *path);

/* By this rule out of our own groups; before the fork, since it uses more than system calls. */
void sy_egress_find(struct sy_egress *egress, sy_egress_rule rule);

/* The same from a given text of /proc/PID/cgroup. */
void sy_egress_read(struct sy_egress *egress, const char *cgroups, sy_egress_rule rule);

/* Go: system calls only. */
void sy_leave_cgroup(const struct sy_egress *egress);

/* Put processes into the group of a cgroup.procs: their children, which are the job's, inherit it.
 */
int sy_join_cgroup(const pid_t *pids, int count, const char *path, struct sy_error *err);

#endif
