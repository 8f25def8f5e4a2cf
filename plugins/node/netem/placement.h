/* Where conditions go: the devices, what is on them already, which band is free. */
#ifndef STEELYARD_NETEM_PLACEMENT_H
#define STEELYARD_NETEM_PLACEMENT_H

#include "base/error.h"
#include "netem/condition.h"

/* Read the devices and decide where each condition goes: its places, and undo.places of the job's
 * document. Nothing is changed, but for a root of ours that no state knows: that is removed. */
int sy_conditions_place(struct sy_conditions *conditions, struct sy_error *err);

#endif
