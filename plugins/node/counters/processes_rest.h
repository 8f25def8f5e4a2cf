/* Processes that somebody else counts. */
#ifndef STEELYARD_COUNTERS_PROCESSES_REST_H
#define STEELYARD_COUNTERS_PROCESSES_REST_H

#include "counters/processes_list.h"

/* Let go all but the roots: until they are to be known again nobody looks for new ones. What they
 * have used is not in the totals then. */
void sy_processes_rest(struct sy_processes *all);
void sy_processes_wake(struct sy_processes *all);

#endif
