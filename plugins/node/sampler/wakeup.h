/* The child's sleep until its next sample, and what ends it before: messages, the end of the
 * parent, of a watched process, and of tasks of a PBS job. */
#ifndef STEELYARD_SAMPLER_WAKEUP_H
#define STEELYARD_SAMPLER_WAKEUP_H

#include <stdint.h>
#include <sys/types.h>

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

/* Sleep for `left_us`, for ever if it is negative; returns a set of sy_woken. SIGTERM ends it, too.
 */
unsigned sy_wakeup_sleep(const struct sy_wakeup *wakeup, int64_t remaining_us);

/* Take SIGTERM in that sleep only, and ignore what a terminal sends. */
void sy_wakeup_signals(void (*on_term)(int));

#endif
