/* The sampler's own memory. It lives as long as the job, so it is small: most of what its start has
 * touched is never needed again. */
#ifndef STEELYARD_SAMPLER_MEMORY_FOOTPRINT_H
#define STEELYARD_SAMPLER_MEMORY_FOOTPRINT_H

#include <stdint.h>

/* Give back memory that the start has used: heap, and pages of program text. */
void sy_shrink(void);

/* VmHWM of this process, bytes, or SY_UNKNOWN. getrusage's maximum would be that of the program
 * this one was executed from. */
int64_t sy_own_max_memory_bytes(void);

#endif
