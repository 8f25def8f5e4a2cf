/* A meter of the administrator's own: a file that a program of his writes anew at each reading,
 * /run/steelyard-meters/FOLDER/NAME.meter, lines "KEY VALUE" (docs/sampler.md, "A meter of your
 * own"). What it says of another part of the node, of no time or of one long ago is no value. */
#ifndef STEELYARD_METERS_METER_FILE_H
#define STEELYARD_METERS_METER_FILE_H

#include "meters/meter.h"

extern const struct sy_reader sy_meter_file;

#endif
