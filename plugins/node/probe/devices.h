/* Network devices and meters of energy of the probe's document. */
#ifndef STEELYARD_PROBE_DEVICES_H
#define STEELYARD_PROBE_DEVICES_H

#include "base/document.h"

void sy_probe_network(int root, struct sy_document *document);
void sy_probe_meters(int root, struct sy_document *document);

#endif
