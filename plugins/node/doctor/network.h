/* What network conditions need on this node. All of it may be missing. */
#ifndef STEELYARD_DOCTOR_NETWORK_H
#define STEELYARD_DOCTOR_NETWORK_H

#include "doctor/check.h"

/* Programs, kernel, policy, and what was left behind. */
void sy_doctor_network(struct sy_doctor *doctor);

#endif
