/* NVIDIA's GPUs: the joules that each has used since its driver was loaded (Volta and later), by
 * nvmlDeviceGetTotalEnergyConsumption of libnvidia-ml.so.1, which comes with the driver. Of one
 * that counts none (NOT_SUPPORTED) the watts of nvmlDeviceGetPowerUsage are integrated.
 *
 * The driver lists its GPUs below /proc/driver/nvidia/gpus, so that the library is loaded by nobody
 * but the process that reads slow meters, once that has no rights left.
 * Sources: NVML API Reference Guide, "Device Queries"; NVIDIA driver README, "The /proc Interface".
 */
#ifndef STEELYARD_METERS_NVML_H
#define STEELYARD_METERS_NVML_H

#include "meters/meter.h"

extern const struct sy_reader sy_nvml;

#endif
