/* A specification written: canonical text, and JSON. */
#ifndef STEELYARD_NETEM_SPEC_TEXT_H
#define STEELYARD_NETEM_SPEC_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "netem/spec/spec.h"

/* The canonical text: parts in the order of the grammar, the largest unit that loses nothing.
 * Parsing it gives the same specification. Returns its length; `text` holds SY_NETEM_SIZE. */
size_t sy_netem_format(const struct sy_netem *spec, char *text);

/* The specification as a JSON object in SI units (docs/formats.md part 9): delay_s, loss (a
 * fraction) …; what was not asked for is not there. A new reference. */
json_t *sy_netem_json(const struct sy_netem *spec);

#endif
