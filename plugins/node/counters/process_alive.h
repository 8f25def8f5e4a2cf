/* Whether processes of others are alive: by id, by id and start, or by marks. */
#ifndef STEELYARD_COUNTERS_PROCESS_ALIVE_H
#define STEELYARD_COUNTERS_PROCESS_ALIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* False also for one that has ended and was not waited for, but before Linux 5.3. */
bool sy_process_lives(pid_t pid);

#define SY_TICKS_NOT_READ -2 /* there was no descriptor left to look with */

/* When it was started, in clock ticks since boot; -1: no such process, or it is dead and only not
 * waited for yet; SY_TICKS_NOT_READ. */
int64_t sy_start_ticks(pid_t pid);

/* The topmost of its name above it: a daemon itself, not a process that it has forked off. */
pid_t sy_topmost(pid_t pid);

/* Whether an open /proc/PID/environ has all of the `count` words, however long it is: 1, 0; -1: it
 * is empty, or cannot be read. */
int sy_environment_has(int fd, const char *const *word, int count);

/* Whether a process of that user has all of the `count` words in its environment. Walks /proc. */
bool sy_marked_process_lives(uid_t uid, const char *const *mark, int count);

#endif
