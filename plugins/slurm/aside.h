/* A piece of slurmstepd's work in a process of its own, outside of the job's cgroups: what holds it
 * up, a file system or a daemon that does not answer, holds up neither the job nor its node. */
#ifndef STEELYARD_SLURM_ASIDE_H
#define STEELYARD_SLURM_ASIDE_H

#include <sys/types.h>

struct sy_aside {
	int fd; /* what it says; -1: it was not started, or not in time */
	pid_t pid;
};

struct sy_aside_work {
	void (*work)(void *context, int tell); /* what it writes to `tell` comes by sy_aside.fd */
	void *context;
	int keep;	  /* a descriptor that it needs; -1: none. All others are closed to it */
	unsigned limit_s; /* it is ended then */
};

/* Start it; waits until it is on its way, `wait_ms` at most. Nobody's child: nobody waits for it.
 */
void sy_aside_start(struct sy_aside *aside, const struct sy_aside_work *work, int wait_ms);

#endif
