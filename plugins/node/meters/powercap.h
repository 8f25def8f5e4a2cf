/* RAPL through the powercap class: the zones under /sys/class/powercap.
 *
 * Zones overlap: psys holds the packages, a package holds its core and uncore; dram lies beside
 * them; intel-rapl-mmio shows zones of intel-rapl a second time. The MSR's come first among those
 * of one name: whoever takes the first of each takes nothing twice.
 * Source: Documentation/power/powercap/powercap.rst of the kernel. */
#ifndef STEELYARD_METERS_POWERCAP_H
#define STEELYARD_METERS_POWERCAP_H

#include "meters/meter.h"

extern const struct sy_reader sy_powercap;

/* Is it a second view, through memory-mapped registers? */
bool sy_powercap_is_mmio(const struct sy_meter *meter);

#endif
