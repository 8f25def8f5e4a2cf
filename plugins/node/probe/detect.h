/* Which virtualization layers this node has: machine, container, cloud product.
 *
 * Names are those of systemd-detect-virt(1) where it has one. docs/probe.md has the table of what
 * is recognised by which witness. */
#ifndef STEELYARD_PROBE_DETECT_H
#define STEELYARD_PROBE_DETECT_H

#include "probe/evidence.h"

struct sy_virtualization {
	struct sy_layer vm;
	struct sy_layer container;
	struct sy_layer cloud;
	const char *detail;    /* Xen: "hvm", "pv", "pvh", "dom0"; KVM: "firecracker"; or NULL */
	const char *node_type; /* "physical", "virtual", "container", or NULL: not known */
};

/* Fill in everything. `ask_others` lets systemd-detect-virt be heard too, on the machine's own "/"
 * only. */
void sy_detect(int root, bool ask_others, struct sy_virtualization *result);

/* The parts, each adding its witnesses. */
void sy_detect_vm(int root, struct sy_layer *vm, const char **detail);
void sy_detect_dmi(int root, struct sy_layer *vm, struct sy_layer *cloud);
void sy_detect_container(int root, struct sy_layer *container);
void sy_detect_cloud(int root, struct sy_layer *cloud);

/* Ask systemd-detect-virt, with a limit of 1 s a layer. */
void sy_ask_systemd(struct sy_layer *vm, struct sy_layer *container);

#endif
