/* The probe: what this node is, as one JSON document: node type, virtualization, kernel,
 * processors, memory, network devices, file systems, meters, and everything else that a figure may
 * depend on.
 *
 * The sampler puts it into each record, `steelyard-node probe` prints it. All is read below one
 * root folder, the machine's own "/" or a recorded tree, so that the tests see every machine that
 * somebody has recorded (docs/probe.md). Which virtualization there is, detect.h decides from
 * witnesses that may contradict each other.
 *
 * It promises that what could not be read is null, with its reason under "missing", and that
 * nothing is changed on the node: no program is started but systemd-detect-virt, and that only if
 * asked for. It measures nothing over time. */
#ifndef STEELYARD_PROBE_PROBE_H
#define STEELYARD_PROBE_PROBE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/json_document.h"

struct sy_probe_options {
	int root;	   /* from sy_root_open(): "/" or a recorded tree */
	bool run_programs; /* may run systemd-detect-virt as one more witness (a few ms) */
};

/* The probe's document (docs/formats.md, "probe"), a new reference, or NULL when out of memory.
 * What could not be read is null there, with its reason under "missing". */
json_t *sy_probe(const struct sy_probe_options *options);

void sy_probe_platform(int root, struct sy_document *document);

void sy_probe_cpu(int root, struct sy_document *document);
void sy_probe_memory(int root, struct sy_document *document);

void sy_probe_network(int root, struct sy_document *document);
void sy_probe_meters(int root, struct sy_document *document);

void sy_probe_filesystems(int root, struct sy_document *document);

/* A field of /proc/mounts and mountinfo: \040 and the like become the characters they stand for, in
 * place. */
void sy_unescape_mount(char *text);

#endif
