/* How records lie in their folder, whether it is swept, and what waits in this node's spool. */
#ifndef STEELYARD_DOCTOR_RECORDS_H
#define STEELYARD_DOCTOR_RECORDS_H

#include "doctor/check.h"

void sy_doctor_records(struct sy_doctor *doctor);
void sy_doctor_sweep(struct sy_doctor *doctor);
void sy_doctor_spool(struct sy_doctor *doctor);

#endif
