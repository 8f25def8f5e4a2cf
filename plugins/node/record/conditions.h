/* A job's conditions of the network, copied into the record at its end. */
#ifndef STEELYARD_RECORD_CONDITIONS_H
#define STEELYARD_RECORD_CONDITIONS_H

#include <jansson.h>

#include "record/record.h"
#include "record/status.h"

/* The conditions of the network that run_dir has for this job, with their tag; the state is removed
 * there. */
void sy_record_conditions(json_t *record, const struct sy_sampling *sampling);

/* On a shared node traffic of the job's own containers is not shaped: where it had some its
 * conditions are not valid, where that is not known a note says so. */
void sy_record_unshaped(json_t *record, const struct sy_status *status);

/* The same for a record whose sampler was killed: what was there is kept where nothing is found. */
void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling);

#endif
