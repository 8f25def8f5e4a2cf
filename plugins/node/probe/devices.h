/* Network devices and energy counters of the probe's document. */
#ifndef STEELYARD_PROBE_DEVICES_H
#define STEELYARD_PROBE_DEVICES_H

#include "base/document.h"

void sy_probe_network(int root, struct sy_document *document);
void sy_probe_rapl(int root, struct sy_document *document);

#endif
