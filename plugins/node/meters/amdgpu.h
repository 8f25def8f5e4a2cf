/* AMD's GPUs: the joules that the firmware has counted, out of the table `gpu_metrics` that the
 * driver amdgpu writes below /sys/class/drm; what ROCm's rsmi_dev_energy_count_get tells, without
 * its library.
 *
 * Slow: each reading asks the firmware. Units of 2^-16 J. A GPU that does not count (RDNA4: always
 * 0) is read by its watts.
 * Sources: drivers/gpu/drm/amd/include/kgd_pp_interface.h of the kernel and of ROCm/amdgpu
 * (gpu_metrics_v1_1 to v1_8); ROCm SMI's reference, rsmi_dev_energy_count_get. */
#ifndef STEELYARD_METERS_AMDGPU_H
#define STEELYARD_METERS_AMDGPU_H

#include "meters/meter.h"

extern const struct sy_reader sy_amdgpu;

/* µJ out of a table; negative, with `why`: it has none. */
int64_t sy_amdgpu_energy_uj(const unsigned char *table, size_t length, const char **why);

/* µW out of a table; negative: it has none. */
int64_t sy_amdgpu_power_uw(const unsigned char *table, size_t length);

#endif
