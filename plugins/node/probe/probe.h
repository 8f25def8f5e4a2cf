/* What this node is: node type, virtualization, and everything a figure may depend on. */
#ifndef STEELYARD_PROBE_PROBE_H
#define STEELYARD_PROBE_PROBE_H

#include <jansson.h>
#include <stdbool.h>

struct sy_probe_options {
	int root;	 /* from sy_root_open(): "/" or a recorded tree */
	bool ask_others; /* may run systemd-detect-virt as one more witness (a few ms) */
};

/* The probe's document (docs/formats.md, "probe"), a new reference, or NULL when out of memory.
 * What could not be read is null there, with its reason under "missing". */
json_t *sy_probe(const struct sy_probe_options *options);

#endif
