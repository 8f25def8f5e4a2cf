/* Processes of the job that no root's tree holds: orphans, and what a scheduler's daemon has
 * started that runs jobs of others, too. Known by the job's user and marks. */
#ifndef STEELYARD_COUNTERS_PROCESSES_HANDED_H
#define STEELYARD_COUNTERS_PROCESSES_HANDED_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/processes_list.h"

/* Every marked child of that daemon is the job's. Once it is gone, so is every marked child of a
 * process of root's that has its name: a daemon may be restarted under a job. `events_fd`: of
 * epoll(7), which reports the ends of its children. */
void sy_processes_starter(struct sy_processes *all, pid_t pid, int events_fd);

/* A child of the daemon has become the job's. The daemon waits for it and reports nothing to us:
 * its last counters are read at its end, as long as the daemon has not waited for it. */
void sy_processes_head(struct sy_processes *all, pid_t pid);

/* Heads have ended: read them, before they are waited for. */
void sy_processes_heads_ended(struct sy_processes *all);

/* `pid` keeps the job's place; daemons of steps, each a root to be, bear its name. */
void sy_processes_keeper(struct sy_processes *all, pid_t pid);

/* A step's daemon enters the job's group before it tells that it is a root: what it uses itself is
 * never the job's. A task of its bears its name, too, until it becomes the user's program. */
bool sy_process_is_fellow(struct sy_processes *all, pid_t pid, pid_t ppid);

/* Forked off by such a daemon, and not yet the user's program. */
bool sy_process_is_task_to_be(struct sy_processes *all, pid_t pid);

/* Whether processes of the job may come before the next sample: then they are looked for. */
bool sy_processes_soon(const struct sy_processes *all, int64_t now_us);

/* Processes of this session are the job's: a session's number is not given anew as long as any
 * process is in it (setsid(2)). */
void sy_processes_session(struct sy_processes *all, pid_t session);

/* A new process whose parent is none of ours: is it the job's? One that is the daemon's and has not
 * become the user's yet is looked at again with the next samples. */
bool sy_process_is_handed(struct sy_processes *all, pid_t pid, pid_t ppid, pid_t session);

/* Of those that were to be looked at again, the next that has become the job's; 0: none. */
pid_t sy_process_next_handed(struct sy_processes *all, int *at);

#endif
