/* What speaks for a name of a layer (machine, container, cloud product), and the decision.
 *
 * Each layer hears witnesses. A witness is one thing read in one place. It speaks for a name with a
 * weight:
 *   4  only this product leaves it there           (a CPUID signature, container=docker of PID 1)
 *   3  this product leaves it, hardly anything else (a DMI vendor, a private namespace)
 *   2  usual for the product, but may be stale or inherited (/.dockerenv)
 *   1  a hint
 * "none" speaks against the layer. A general name ("vm-other", "qemu") gives its weight to a
 * special one ("kvm") that is also there: the two do not contradict each other.
 */
#ifndef STEELYARD_PROBE_EVIDENCE_H
#define STEELYARD_PROBE_EVIDENCE_H

#include <stddef.h>

#define SY_EVIDENCE_MAX 40

struct sy_evidence {
	char source[96];
	char value[120];
	const char *name; /* what it indicates; lives as long as the program */
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
void sy_add_evidence(struct sy_layer *layer, int weight, const char *name, const char *source,
		     const char *value);

/* Decide from all witnesses. `other` is the name for "one of them, not known which"; `refinements`
 * ends with a pair of NULLs. No witness at all leaves the name NULL. */
void sy_decide_layer(struct sy_layer *layer, const char *other,
		     const struct sy_refinement *refinements);

const char *sy_confidence_name(enum sy_confidence confidence);

#endif
