/* CPU and memory of the probe's document. */
#ifndef STEELYARD_PROBE_CPU_H
#define STEELYARD_PROBE_CPU_H

#include <stdbool.h>

#include "base/document.h"

void sy_probe_cpu(int root, struct sy_document *document);
void sy_probe_memory(int root, struct sy_document *document);

/* A list of CPU numbers ("0-3,8,10-11") into `marks` of `size`: how many, or -1 when it is no such
 * list. Numbers from `size` on are counted, not marked. */
int sy_parse_cpu_list(const char *text, bool *marks, int size);

#endif
