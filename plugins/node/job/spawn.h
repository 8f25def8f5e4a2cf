/* Starting steelyard-node from a scheduler's daemon, which may have threads: a process of its own,
 * outside the job's process groups and cgroups. Nothing that kills or accounts the job's processes
 * reaches it. */
#ifndef STEELYARD_JOB_SPAWN_H
#define STEELYARD_JOB_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_ARGUMENTS_MAX 512 /* a user may be in 128 groups, two words each */
#define SY_SPAWN_FDS	 4
#define SY_EGRESS_MAX	 48

struct sy_egress {
	size_t count;
	char paths[SY_EGRESS_MAX][320]; /* cgroup.procs files, in the order to try */
};

/* The way out of one group, as a line of /proc/PID/cgroup has it: `controllers` is "" in version 2,
 * `path` begins with "/". */
typedef void (*sy_egress_rule)(struct sy_egress *egress, const char *controllers, const char *path);

/* The arguments of a program; what `argv` points to must live until it was started. */
struct sy_arguments {
	char *argv[SY_ARGUMENTS_MAX];
	size_t count;
	const char *variable;  /* a variable of our environment that it has, too */
	sy_egress_rule egress; /* which cgroups it must leave; NULL: none */
	bool unseen; /* runs beside a job's tasks: a sampler never counts it as one of them */
};

/* Append one word, or an option with its value; what has no room is left out. Keeps the NULL that
 * ends the list. */
void sy_argument(struct sy_arguments *to, const char *word);
void sy_option(struct sy_arguments *to, const char *option, const char *value);

/* Start argv[0] with fds[i] as its descriptor i (-1: /dev/null; for 3, none), a session of its own,
 * an environment of its own, and none of our descriptors. Returns when it is on its way. `pid`: its
 * process id, 0 where it is not known; or NULL. */
int sy_spawn(const struct sy_arguments *arguments, const int fds[SY_SPAWN_FDS], pid_t *pid,
	     struct sy_error *err);

/* A program's output. `out` is cut at its size and ended by NUL; `message` is the last line of
 * stderr. */
struct sy_spawn_output {
	char *out;
	size_t out_size;
	char message[sizeof(((struct sy_error *)0)->text)];
};

/* Start it, and wait until it has closed stdout and stderr, at most `limit_ms`. -1 when it could
 * not be started, or is not done by then: it continues by itself. Its exit code is unknown, since
 * it is not our child; our own commands leave stdout empty when they fail and print the reason on
 * stderr. */
int sy_spawn_and_read(const struct sy_arguments *arguments, int limit_ms,
		      struct sy_spawn_output *answer, struct sy_error *err);

/* --- which cgroups a process must leave, and moving processes between cgroups --- */

/* Append MOUNT/PATH/cgroup.procs, MOUNT below /sys/fs/cgroup, of PATH `length` bytes. */
void sy_egress_add(struct sy_egress *egress, const char *mount, const char *path, size_t length,
		   const char *below);

/* The mount point of a hierarchy of version 1, from /proc/PID/cgroup's second field. */
void sy_egress_mount(char *mount, size_t size, const char *controllers);

/* To the top of every hierarchy: out of whatever the scheduler or its daemon is kept in. */
void sy_egress_to_top(struct sy_egress *egress, const char *controllers, const char *path);

/* The same from a given text of /proc/PID/cgroup. */
void sy_egress_read(struct sy_egress *egress, const char *cgroups, sy_egress_rule rule);

/* Put processes into the group of a cgroup.procs: their children, which are the job's, inherit it.
 */
int sy_join_cgroup(const pid_t *pids, int count, const char *path, struct sy_error *err);

#endif
