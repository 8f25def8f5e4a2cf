/* HPE Cray EX, XC: /sys/cray/pm_counters, joules that the blade's controller counts ten times a
 * second.
 *
 * `energy` is the whole node's, accelerators included; the others are parts of it. Lines are
 * "12345 J 1795270138123456 us".
 * Source: "User Access to Compute Node Power Data", docs-csm of Cray-HPE. */
#ifndef STEELYARD_METERS_CRAY_H
#define STEELYARD_METERS_CRAY_H

#include "meters/meter.h"

extern const struct sy_reader sy_cray;

#endif
