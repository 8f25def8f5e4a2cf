/* Our line of Slurm's plugstack.conf. */
#ifndef STEELYARD_DOCTOR_PLUGSTACK_H
#define STEELYARD_DOCTOR_PLUGSTACK_H

#include "doctor/check.h"

/* Look for the file, where --plugstack names none: as slurm.conf's PlugStackConfig says, else
 * beside it. 0: there is one; `place`, `plugin` and `config` are set by it and it was judged; -1:
 * none. */
int sy_doctor_plugstack(struct sy_doctor *doctor);

#endif
