/* The parts of the probe's document, each filling in its own fields. */
#ifndef STEELYARD_PROBE_SYSTEM_H
#define STEELYARD_PROBE_SYSTEM_H

#include "base/document.h"

void sy_probe_cpu(int root, struct sy_document *document);
void sy_probe_memory(int root, struct sy_document *document);
void sy_probe_network(int root, struct sy_document *document);
void sy_probe_filesystems(int root, struct sy_document *document);
void sy_probe_rapl(int root, struct sy_document *document);

/* A field of /proc/mounts and mountinfo: \040 and the like become the characters they stand for, in
 * place. */
void sy_unescape_mount(char *text);

/* A list of CPU numbers ("0-3,8,10-11") into `marks` of `size`: how many, or -1 when it is no such
 * list. Numbers from `size` on are counted, not marked. */
int sy_parse_cpu_list(const char *text, bool *marks, int size);

#endif
