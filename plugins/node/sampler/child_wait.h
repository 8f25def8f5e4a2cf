/* What the child waits for: its sleep until the next sample, what ends it before (messages, the end
 * of the parent, of a watched process, of tasks of a PBS job), and when nothing is left to wait
 * for.
 */
#ifndef STEELYARD_SAMPLER_CHILD_WAIT_H
#define STEELYARD_SAMPLER_CHILD_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/processes.h"

struct sy_wakeup {
	int events_fd;
	int parent_fd, control_fd; /* sockets; control_fd may be -1 */
	int watch_fd;		   /* pidfd of `watch`, or -1 where the kernel has none */
	pid_t watch;		   /* whose end ends the sleep; 0: nobody's */
};

enum sy_woken {
	SY_WOKEN_CONTROL = 1,
	SY_WOKEN_PARENT = 2, /* a message of the parent */
	SY_WOKEN_END = 4,    /* the parent has gone */
	SY_WOKEN_WATCH = 8,  /* the watched process has */
	SY_WOKEN_TASK = 16,  /* a task has, whose descriptor was added to events_fd */
};

/* The descriptors are set; 0, or -1. */
int sy_wakeup_open(struct sy_wakeup *wakeup);

/* Watch another process from now on; 0: none. */
void sy_wakeup_watch(struct sy_wakeup *wakeup, pid_t pid);

/* Sleep so long, for ever if it is negative; returns a set of sy_woken. SIGTERM ends it, too. */
unsigned sy_wakeup_sleep(const struct sy_wakeup *wakeup, int64_t remaining_us);

/* Take SIGTERM in that sleep only, and ignore what a terminal sends. */
void sy_wakeup_signals(void (*on_term)(int));

/* --- how long a job's sampler runs: while the process that is to send `end` lives (--watch), then
 * while any step's daemon or process of the job does, then `linger_us` more, in which a restarted
 * daemon may come back. --- */

#define SY_MAX_WATCHED_ROOTS 64 /* of more, those announced first are watched */

struct sy_lifetime {
	pid_t root[SY_MAX_WATCHED_ROOTS]; /* that messages have named */
	int roots;
	bool leaving; /* `leave`: the watched process ends, and a root sends the job's end */
	bool check_survivors; /* look for survivors at the next wakeup */
	int64_t linger_us;    /* how long to wait when nobody is left */
	int64_t until_us;     /* when that wait ends; 0: it has not begun */
};

/* A root that has reported its final counters may still request totals, or send `end`. */
void sy_lifetime_add_root(struct sy_lifetime *life, pid_t pid);

/* Watch the next survivor; false: the sampler ends. `all`: the processes as of this moment. */
bool sy_lifetime_continues(struct sy_lifetime *life, const struct sy_processes *all,
			   struct sy_wakeup *wakeup, int64_t now_us);

/* Microseconds until `next_us` (0: none) or the end of the wait, as sy_wakeup_sleep() takes it. */
int64_t sy_lifetime_sleep_us(const struct sy_lifetime *life, int64_t next_us, int64_t now_us);

#endif
