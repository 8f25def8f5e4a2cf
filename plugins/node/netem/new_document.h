/* The document of a condition as it is before anything is done (docs/formats.md part 9). */
#ifndef STEELYARD_NETEM_NEW_DOCUMENT_H
#define STEELYARD_NETEM_NEW_DOCUMENT_H

#include "netem/condition.h"

/* A new reference, whose it is with it; NULL: that cannot be told. */
json_t *sy_condition_new_document(const struct sy_condition *condition, struct sy_error *err);

#endif
