/* The steps of a job that have been announced: who is left to tell its end when the one who
 * started the sampler has gone. */
#ifndef STEELYARD_SAMPLER_OPEN_ROOTS_H
#define STEELYARD_SAMPLER_OPEN_ROOTS_H

#include <stdbool.h>
#include <sys/types.h>

#define SY_MAX_OPEN_ROOTS 64 /* when there are more, those announced first are kept */

struct sy_open_roots {
	pid_t pid[SY_MAX_OPEN_ROOTS];
	int count;
};

void sy_open_roots_add(struct sy_open_roots *roots, pid_t pid);

/* One whose process still runs, or 0. One that has told its final counters may still ask for the
 * totals, or say that the job ends. */
pid_t sy_open_roots_living(struct sy_open_roots *roots);

/* One that has ended and was not waited for does not; kernels before 5.3 cannot tell. */
bool sy_lives(pid_t pid);

#endif
