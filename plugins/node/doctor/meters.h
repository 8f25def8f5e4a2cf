/* What tells joules here, and what an administrator says that the node draws idle. */
#ifndef STEELYARD_DOCTOR_METERS_H
#define STEELYARD_DOCTOR_METERS_H

#include "doctor/check.h"

void sy_doctor_energy(struct sy_doctor *doctor);

/* Nothing where nobody has said it. */
void sy_doctor_idle_power(struct sy_doctor *doctor);

#endif
