/* One field of a record, or the reason why it has none. */
#ifndef STEELYARD_RECORD_PUT_H
#define STEELYARD_RECORD_PUT_H

#include <jansson.h>

/* Set the field at a dotted path ("energy.zones.0.energy_j"), making objects on the way. A null
 * has its reason `why` under `missing`; a value takes the reason away. Takes `value`. */
void sy_record_put(json_t *record, const char *path, json_t *value, const char *why);

#endif
