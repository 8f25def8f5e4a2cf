/* The readings of meters that may take long to answer: a process of their own (slow_process.c)
 * writes them into shared memory, the sampler reads them there, and never waits but for a moment at
 * its end. */
#ifndef STEELYARD_METERS_SLOW_READINGS_H
#define STEELYARD_METERS_SLOW_READINGS_H

#include <stdatomic.h>

#include "base/samples.h"
#include "meters/readings_to_joules.h"

#define SY_LAST_READING_US 200000 /* the job's end waits for it */

/* Shared memory. The writer makes the version odd first. */
struct sy_slow {
	_Atomic unsigned version, requested, answered;
	_Atomic int64_t cpu_ns; /* of the process that reads */
	struct sy_energy energy[SY_MAX_ZONES];
	int request_fd;
};

/* NULL: there is no memory to share. */
struct sy_slow *sy_slow_create(void);

void sy_slow_write(struct sy_slow *slow, int meter, const struct sy_energy *energy);

/* As of its last reading; what cannot be had whole now is left as it was. */
void sy_slow_read(const struct sy_slow *slow, int meter, struct sy_energy *energy);

/* Have all of them read now, and wait for that, `most_us` at most. NULL: there are none. */
void sy_slow_request(struct sy_slow *slow, int64_t most_us);

#endif
