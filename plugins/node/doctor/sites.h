/* Files of sites that jobs on this node may ask for (docs/netem.md). */
#ifndef STEELYARD_DOCTOR_SITES_H
#define STEELYARD_DOCTOR_SITES_H

#include "doctor/check.h"

/* `netem sites`; nothing is said where there is no such file. */
void sy_doctor_sites(struct sy_doctor *doctor);

#endif
