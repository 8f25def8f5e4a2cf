/* A job's conditions of the network and its capture, taken into the record at its end. */
#ifndef STEELYARD_RECORD_CONDITIONS_H
#define STEELYARD_RECORD_CONDITIONS_H

#include <jansson.h>

#include "record/record.h"

/* What lies in run_dir for this job: conditions of the network, with their tag, and a
 * capture, which is waited for when it is being closed. Both are removed there. */
void sy_record_conditions(json_t *record, const struct sy_sampling *sampling);

/* The same for a record whose sampler was killed: what was there is kept where nothing is found. */
void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling);

#endif
