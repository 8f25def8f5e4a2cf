/* What this kernel counts of jobs: cgroups, and steelyard-bpf. */
#ifndef STEELYARD_DOCTOR_KERNEL_H
#define STEELYARD_DOCTOR_KERNEL_H

#include "doctor/check.h"

void sy_doctor_cgroups(struct sy_doctor *doctor);
void sy_doctor_kernel_counts(struct sy_doctor *doctor);

#endif
