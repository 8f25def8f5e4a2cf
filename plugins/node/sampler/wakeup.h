/* What ends the sampler's sleep before its next sample: messages, and the end of others. */
#ifndef STEELYARD_SAMPLER_WAKEUP_H
#define STEELYARD_SAMPLER_WAKEUP_H

#include <stdint.h>
#include <sys/types.h>

struct sy_wakeup {
	int events_fd;
	int parent_fd, control_fd; /* sockets; control_fd may be -1 */
	int watch_fd;		   /* pidfd of `watch`, or -1 where the kernel has none */
	pid_t watch;		   /* whose end is told; 0: nobody's is */
};

enum sy_woken {
	SY_WOKEN_CONTROL = 1,
	SY_WOKEN_PARENT = 2, /* a message of the parent */
	SY_WOKEN_END = 4,    /* the parent has gone */
	SY_WOKEN_WATCH = 8,  /* the one to be watched has */
	SY_WOKEN_HEAD = 16,  /* another has, whose descriptor was added to events_fd */
};

/* The descriptors are set; 0, or -1. */
int sy_wakeup_open(struct sy_wakeup *wakeup);

/* Watch another one from now on; 0: nobody. */
void sy_wakeup_watch(struct sy_wakeup *wakeup, pid_t pid);

/* Sleep for `left_us`, for ever if it is negative: what there is to do, as a set of sy_woken.
 * SIGTERM ends it too. */
unsigned sy_wakeup_sleep(const struct sy_wakeup *wakeup, int64_t left_us);

/* SIGTERM comes in that sleep only; what a terminal sends is not for us. */
void sy_wakeup_signals(void (*on_term)(int));

#endif
