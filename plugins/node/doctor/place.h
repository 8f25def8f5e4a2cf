/* How Steelyard was set up on this node: by a line of Slurm's plugstack.conf, or by
 * /etc/steelyard/pbs.conf. */
#ifndef STEELYARD_DOCTOR_PLACE_H
#define STEELYARD_DOCTOR_PLACE_H

#include "doctor/check.h"

/* Fill in `config`, `place` and `plugin`, and say what is wrong with them. */
void sy_doctor_find_place(struct sy_doctor *doctor);

#endif
