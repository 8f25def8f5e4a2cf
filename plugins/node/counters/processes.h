/* The processes of a job and what they have used, short-lived ones as far as can be known.
 *
 * A job's processes are the descendants of its roots (roots left out) and whatever lies in its
 * cgroup. New ones are found without walking /proc: /proc/loadavg tells the process id given last,
 * so only ids between two samples are looked at. A process that has not run since the last sample
 * (its CPU clock stands still) has not changed and is not read again.
 *
 * A process' own counters take in those of the children it has waited for. So when a process is
 * gone, its counters must show up in its parent's: what does is dropped, what does not is kept.
 * Thus totals never go down and nothing counts twice. No allocation after sy_processes_init(). */
#ifndef STEELYARD_COUNTERS_PROCESSES_H
#define STEELYARD_COUNTERS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "counters/processes_list.h"

/* `max_fds`: how many descriptors may be kept open. */
int sy_processes_init(struct sy_processes *all, pid_t self, pid_t parent, int max_fds,
		      struct sy_error *err);

/* The job's processes are the descendants of `pid`. */
void sy_processes_root(struct sy_processes *all, pid_t pid);

/* This root tells its final counters at its end (sy_processes_done). */
void sy_processes_promise(struct sy_processes *all, pid_t pid);

/* Root `pid` ends; its own final counters, and the page faults of the children that it has waited
 * for, -1: not told. What is told of the same process again replaces what
 * was told before, as long as messages of it may be waiting: `heard` says when none is. */
void sy_processes_done(struct sy_processes *all, pid_t pid, const struct sy_usage *final,
		       int64_t faults);

/* The job's cgroup; `path` must stay where it is. */
void sy_processes_cgroup(struct sy_processes *all, const char *path);

/* Take a sample; `all_of_them` reads also what has not changed, for the last one. */
void sy_processes_refresh(struct sy_processes *all, bool all_of_them);

/* Totals of the last sample. */
struct sy_usage sy_processes_total(const struct sy_processes *all);
/* Of the cgroup of that controller. */
struct sy_daemons sy_processes_daemons(struct sy_processes *all, const char *controller);
struct sy_usage sy_processes_told(const struct sy_processes *all); /* by roots at their end */
int64_t sy_processes_rss_bytes(const struct sy_processes *all);
int sy_processes_alive(const struct sy_processes *all);

/* Those at work that live on. */
int sy_processes_at_work(const struct sy_processes *all);

/* Roots that are gone and have not told the final counters that they had promised. */
int sy_processes_silent_roots(const struct sy_processes *all);

/* One of them that `lives`; 0: none. */
pid_t sy_processes_any(const struct sy_processes *all, bool (*lives)(pid_t));

/* Is any process of the job in the cgroup as `controller` has it ("": version 2)? A task that is
 * not yet the user's program may still be on its way there. */
enum sy_place { SY_IN_GROUP, SY_ELSEWHERE, SY_NOBODY_TO_ASK };
enum sy_place sy_processes_place(struct sy_processes *all, const char *controller);

#endif
