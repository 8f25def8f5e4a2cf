/* The process that reads slow meters: it is nobody's child, holds no right, and ends when the
 * sampler does, or when one of its meters has not answered for half a minute. */
#ifndef STEELYARD_METERS_SLOW_PROCESS_H
#define STEELYARD_METERS_SLOW_PROCESS_H

#include "meters/meters.h"

/* Start it if there is a slow meter that can be read: it has `root` for theirs. Where it cannot be
 * started they have no value. Call it before a subreaper is set: it must not become a child. */
void sy_slow_start(struct sy_meters *meters, int root);

/* Let it end; the CPU time that it has used, ns. */
int64_t sy_slow_end(struct sy_meters *meters);

#endif
