/* The energy counters of this node: the RAPL zones under /sys/class/powercap.
 *
 * Zones overlap: psys holds the packages, a package holds its core and uncore; dram lies beside
 * them; intel-rapl-mmio shows zones of intel-rapl a second time. `counted` marks those whose sum is
 * the node's energy: packages and dram, each once, told by their name.
 * Source: Documentation/power/powercap/powercap.rst of the kernel. */
#ifndef STEELYARD_COUNTERS_RAPL_H
#define STEELYARD_COUNTERS_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* More than any machine has: 8 packages with 4 dies, each with 3 zones inside, seen twice. */
#define SY_RAPL_MAX_ZONES 256

struct sy_rapl_zone {
	char path[160]; /* folder inside the root: "/sys/class/powercap/intel-rapl:0" */
	char name[32];	/* "package-0", "dram", …; "" when it could not be read */
	int parent;	/* index of the zone that holds this one, or -1 */
	uint64_t max_energy_range_uj; /* µJ at which energy_uj starts again; 0: could not be read */
	bool readable; /* energy_uj can be read by this process (root, since Linux 5.10) */
	bool counted;  /* in the node's total; also when not readable */
	char why[96];  /* why it is not readable, for `missing`; else "" */
};

/* Find the zones below `root`, in the order of their numbers. Returns how many; when 0, `err` says
 * why there are none. Never more than `capacity`: the rest is left out, and `err` says so. */
int sy_rapl_find(int root, struct sy_rapl_zone *zones, size_t capacity, struct sy_error *err);

#endif
