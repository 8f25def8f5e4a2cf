/* A job's conditions of the network, copied into the record at its end. */
#ifndef STEELYARD_RECORD_CONDITIONS_H
#define STEELYARD_RECORD_CONDITIONS_H

#include <jansson.h>

#include "record/record.h"

/* The conditions of the network that run_dir has for this job, with their tag; the state is removed
 * there. */
void sy_record_conditions(json_t *record, const struct sy_sampling *sampling);

/* The same for a record whose sampler was killed: what was there is kept where nothing is found. */
void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling);

#endif
