/* The sampler: a parent that keeps its rights and writes the record, and a child that gives its
 * rights up and samples. docs/sampler.md tells who reads what, and what can be wrong.
 *
 * Between the two: a page of shared memory with the last totals, so that the parent knows them
 * whatever happens to the child, and a socket pair. */
#ifndef STEELYARD_SAMPLER_PARENT_H
#define STEELYARD_SAMPLER_PARENT_H

#include "record/record.h"

/* The parent's whole life: the exit code of the program. */
int sy_sample(struct sy_sampling *sampling);

#endif
