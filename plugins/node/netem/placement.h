/* Where a condition goes: the devices, what stands on them already, which band is free. */
#ifndef STEELYARD_NETEM_PLACEMENT_H
#define STEELYARD_NETEM_PLACEMENT_H

#include "base/error.h"
#include "netem/condition.h"

/* Look at the devices and decide where the condition goes: places, and undo.places of the document.
 * Nothing is changed, but for a root of ours that no state knows: that is removed. */
int sy_condition_place(struct sy_condition *condition, struct sy_error *err);

#endif
