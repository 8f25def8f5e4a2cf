/* The virtualization layers of this node: machine, container, cloud product. evidence.h decides
 * between contradicting evidence.
 *
 * Names are those of systemd-detect-virt(1) where it has one; docs/probe.md lists them. */
#ifndef STEELYARD_PROBE_DETECT_H
#define STEELYARD_PROBE_DETECT_H

#include <stdbool.h>

#include "probe/evidence.h"

struct sy_virtualization {
	struct sy_layer vm;
	struct sy_layer container;
	struct sy_layer cloud;
	const char *detail;    /* Xen: "hvm", "pv", "pvh", "dom0"; KVM: "firecracker"; or NULL */
	const char *node_type; /* "physical", "virtual", "container", or NULL: not known */
};

/* Fill in all fields. With `run_programs` the answer of systemd-detect-virt is added, on the
 * machine's own "/" only. */
void sy_detect(int root, bool run_programs, struct sy_virtualization *result);

#endif
