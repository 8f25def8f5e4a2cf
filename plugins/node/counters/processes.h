/* The living processes of a job, and what the job's steps have reported.
 *
 * Which processes are the job's: process_members.h. How one is read: process_table.h.
 *
 * Two sums come from here:
 * - reported: the final counters of roots (message `done`), and of tasks that a PBS daemon starts,
 *   read at their end. They are the kernel's own sums over all children that these have waited
 *   for, and totals of a record.
 * - the sum of a sample: what was reported, and of steps that run what their living processes
 *   have used, those they have waited for included. It is approximate, and never too large: each
 *   reading of a process precedes the last look at whether its children are alive, so no child is
 *   in it twice. It lacks what has ended and was waited for by a root since then (I/O), or by
 *   nobody.
 * What is missing is not inferred. record/record.h decides whether a record is complete.
 *
 * Where another source counts the job, only roots are kept (sy_processes_keep_roots). No allocation
 * after sy_processes_init(). */
#ifndef STEELYARD_COUNTERS_PROCESSES_H
#define STEELYARD_COUNTERS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "counters/process_table.h"

/* `max_fds`: how many descriptors may be kept open. */
int sy_processes_init(struct sy_processes *all, pid_t self, pid_t parent, int max_fds,
		      struct sy_error *err);

/* The job's processes are the descendants of `pid`. */
void sy_processes_root(struct sy_processes *all, pid_t pid);

/* Root `pid` ends and reports its final counters. A later report of the same process replaces the
 * earlier one, as long as messages may be waiting: `messages_read` counts when none is. */
void sy_processes_done(struct sy_processes *all, pid_t pid, const struct sy_usage *final);

/* The job's cgroup; `path` must stay where it is. */
void sy_processes_cgroup(struct sy_processes *all, const char *path);

/* Take a sample; `all_of_them` reads also what has not changed, for the last one. */
void sy_processes_refresh(struct sy_processes *all, bool all_of_them);

/* Forget all but the roots: until sy_processes_keep_all() nothing new is looked for. */
void sy_processes_keep_roots(struct sy_processes *all);
void sy_processes_keep_all(struct sy_processes *all);

/* The sum of the last sample, and of that what roots have reported. */
struct sy_usage sy_processes_total(const struct sy_processes *all);
struct sy_usage sy_processes_reported(const struct sy_processes *all);
int64_t sy_processes_rss_bytes(const struct sy_processes *all);
int sy_processes_alive(const struct sy_processes *all); /* a zombie is not */

/* One of them that `lives`; 0: none. */
pid_t sy_processes_find_living(const struct sy_processes *all, bool (*lives)(pid_t));

/* Is any process of the job in the cgroup as `controller` has it ("": version 2)? A task that is
 * not yet the user's program may still be on its way there. */
enum sy_location { SY_IN_GROUP, SY_ELSEWHERE, SY_NO_PROCESS };
enum sy_location sy_processes_locate(struct sy_processes *all, const char *controller);

#endif
