/* The meters of energy in a record: what each is, and what they have told. */
#ifndef STEELYARD_RECORD_METERS_H
#define STEELYARD_RECORD_METERS_H

#include <jansson.h>

#include "meters/meters.h"
#include "record/status.h"

/* As they are at the start, none with a value; why the node has no energy. */
void sy_record_meters(json_t *record, const struct sy_meters *meters,
		      const struct sy_labels *labels);

/* What only the sampler knows at the end. */
void sy_record_meters_end(json_t *record, const struct sy_status *status,
			  const char why[][SY_WHY_SIZE]);

#endif
