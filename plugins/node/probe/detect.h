/* Which virtualization layers this node has: machine, container, cloud product.
 *
 * Each layer hears witnesses. A witness is one thing read in one place. It speaks for a name with a
 * weight:
 *   4  only this product leaves it there           (a CPUID signature, container=docker of PID 1)
 *   3  this product leaves it, hardly anything else (a DMI vendor, a private namespace)
 *   2  usual for the product, but may be stale or inherited (/.dockerenv)
 *   1  a hint
 * "none" speaks against the layer. A general name ("vm-other", "qemu") gives its weight to a
 * special one ("kvm") that is also there: the two do not contradict each other.
 *
 * Names are those of systemd-detect-virt(1) where it has one. docs/probe.md has the table of what
 * is recognized by which witness. */
#ifndef STEELYARD_PROBE_DETECT_H
#define STEELYARD_PROBE_DETECT_H

#include <stdbool.h>
#include <stddef.h>

#define SY_EVIDENCE_MAX 40

struct sy_evidence {
	char source[96];
	char value[120];
	const char *says; /* a name that lives as long as the program */
	int weight;
};

enum sy_confidence { SY_WEAK, SY_LIKELY, SY_CERTAIN };

/* "special" is a kind of "general". */
struct sy_refinement {
	const char *general;
	const char *special;
};

struct sy_layer {
	struct sy_evidence evidence[SY_EVIDENCE_MAX];
	size_t count;
	const char *name; /* NULL: not known */
	enum sy_confidence confidence;
};

/* Add a witness; what does not fit is dropped (there are fewer witnesses than places). */
void sy_add_witness(struct sy_layer *layer, int weight, const char *says, const char *source,
		    const char *value);

/* Decide from all witnesses. `other` is the name for "one of them, not known which"; `refinements`
 * ends with a pair of NULLs. No witness at all leaves the name NULL. */
void sy_decide_layer(struct sy_layer *layer, const char *other,
		     const struct sy_refinement *refinements);

const char *sy_confidence_name(enum sy_confidence confidence);

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

/* The witnesses of the machine layer (`detail` as in struct sy_virtualization), of the firmware
 * (DMI) for it and for the cloud product, of the cloud product alone, and of the container layer.
 */
void sy_detect_vm(int root, struct sy_layer *vm, const char **detail);
void sy_detect_dmi(int root, struct sy_layer *vm, struct sy_layer *cloud);
void sy_detect_cloud(int root, struct sy_layer *cloud);
void sy_detect_container(int root, struct sy_layer *container);

#endif
