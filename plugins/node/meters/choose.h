/* Which meters make up the node's energy: each joule once. */
#ifndef STEELYARD_METERS_CHOOSE_H
#define STEELYARD_METERS_CHOOSE_H

#include "meters/meter.h"

/* Mark those that count; whether there are any. */
bool sy_meters_choose(struct sy_meter *meter, int count);

#endif
