/* Which processes of this machine are the job's, where the kernel does not count it.
 *
 * A process is the job's if
 * - its parent is, or is a root (which itself is not);
 * - it is in the job's cgroup or one below, and no daemon of a step;
 * - its session is that of a process of the job, or one that a message has named;
 * - it is an orphan, the job's user's, and has all of the job's marks in its environment;
 * - (PBS) it is a child of the daemon that starts the job's tasks, the job's user's, and has the
 *   first mark. Of a daemon that has taken that one's place all marks count: several may share a
 *   machine.
 * Never the job's are the sampler, Steelyard's other programs, the extern step's daemon and the
 * `sleep` that it starts, and what a step's daemon forks once its tasks have ended.
 *
 * New processes are found by their ids: those between the last two values of /proc/loadavg's last
 * process id. /proc is walked after a root, a cgroup or a task has appeared, and where loadavg is
 * not the kernel's own. A child of the PBS daemon that is still root's, or has no environment yet,
 * stays undecided and is looked at again.
 *
 * Of tasks that the PBS daemon starts, the last counters are read at their end, before the daemon
 * waits for them. That is a race; a task that is lost makes the record incomplete. */
#ifndef STEELYARD_COUNTERS_PROCESS_MEMBERS_H
#define STEELYARD_COUNTERS_PROCESS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/process_table.h"

/* Find new processes of the job. */
void sy_processes_discover(struct sy_processes *all);

/* A process that runs already is the job's, and its descendants are. */
void sy_processes_follow(struct sy_processes *all, pid_t pid);

/* Processes of this session are the job's: its number is not given to another as long as any
 * process is in it (setsid(2)). */
void sy_processes_add_session(struct sy_processes *all, pid_t session);

/* `controller` as in sy_parse_in_cgroup(). */
bool sy_process_is_in_cgroup(struct sy_processes *all, pid_t pid, const char *controller);

/* --- Slurm --- */

/* The extern step's daemon, 0: none. Every step's daemon has its name. */
void sy_processes_use_extern_daemon(struct sy_processes *all, pid_t pid);

/* A step's daemon enters the job's cgroup before it announces itself. Its own usage is never the
 * job's. */
bool sy_process_is_step_daemon(struct sy_processes *all, pid_t pid, pid_t ppid);

/* It has the name of such a daemon: a fork of one has it, too, until it executes the user's
 * program. */
bool sy_process_has_daemon_name(struct sy_processes *all, pid_t pid);

/* --- PBS --- */

/* The daemon that starts the job's tasks. `events_fd`: of epoll(7), which reports their ends. */
void sy_processes_use_starter(struct sy_processes *all, pid_t pid, int events_fd);

/* Tasks have ended: read them, before the daemon waits for them. */
void sy_processes_read_ended_tasks(struct sy_processes *all);

/* A task may begin at any moment, and end before the next sample: look for it more often. */
bool sy_processes_expect_task(const struct sy_processes *all, int64_t now_us);

#endif
