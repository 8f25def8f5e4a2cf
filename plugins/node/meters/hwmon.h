/* Meters under /sys/class/hwmon: counters of sockets (amd_energy) and of Intel's GPUs (i915, xe),
 * and the watts of ACPI's power meters where they say what they measure (NVIDIA Grace).
 *
 * Other sensors of power (disks, network cards, power supplies) are left alone: none tells what of
 * the node it covers.
 * Sources: Documentation/hwmon/{sysfs-interface,amd_energy,acpi_power_meter}.rst and
 * Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon of the kernel; NVIDIA Grace
 * Performance Tuning Guide, "Power and Thermals". */
#ifndef STEELYARD_METERS_HWMON_H
#define STEELYARD_METERS_HWMON_H

#include "meters/meter.h"

extern const struct sy_reader sy_hwmon;

#endif
