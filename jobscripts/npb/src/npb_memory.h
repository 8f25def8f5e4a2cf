/*
 * Is there memory for the class, before anything is allocated: a node that begins to swap, or
 * whose ranks are killed one by one, tells nobody why.
 */
#ifndef NPB_MEMORY_H
#define NPB_MEMORY_H

#include "npb.h"

/* On all ranks the same answer: true, or false with the line of the fullest node. */
bool npb_check_memory(const struct npb_kernel *kernel, const struct npb_run *run, char *message,
		      size_t size);

#endif
