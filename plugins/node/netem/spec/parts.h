/* The parts of a specification, one row each, in the order of the canonical text. */
#ifndef STEELYARD_NETEM_SPEC_PARTS_H
#define STEELYARD_NETEM_SPEC_PARTS_H

#include <stdbool.h>

#include "base/error.h"
#include "netem/spec/spec.h"

struct sy_netem_part {
	const char *name;
	/* Read a value, which may be cut up, into `spec`: 0, or -1 with what was expected. */
	int (*parse)(char *value, struct sy_netem *spec, struct sy_error *err);
	const char *example;
	bool many; /* may be there more than once */
};

extern const struct sy_netem_part sy_netem_parts[]; /* the last one has no name */

/* In the order of their enums; the last one is NULL. */
extern const char *const sy_distribution_names[], *const sy_direction_names[];

#endif
