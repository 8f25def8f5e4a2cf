/* RAPL through perf's power events: /sys/bus/event_source/devices/power, perf_event_open(2).
 *
 * The same counters as powercap's: of use where that is not there, or may not be read. In a
 * recorded tree the counts stand in /.steelyard/perf/EVENT.CPU. Source:
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-events of the kernel. */
#ifndef STEELYARD_METERS_PERF_H
#define STEELYARD_METERS_PERF_H

#include "meters/meter.h"

extern const struct sy_reader sy_perf;

#endif
