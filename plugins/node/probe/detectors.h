/* The witnesses of each layer, read below a root. */
#ifndef STEELYARD_PROBE_DETECTORS_H
#define STEELYARD_PROBE_DETECTORS_H

#include "probe/evidence.h"

/* The witnesses of the machine layer (`detail` as in struct sy_virtualization of detect.h), of the
 * firmware (DMI) for it and for the cloud product, of the cloud product alone, and of the container
 * layer.
 */
void sy_detect_vm(int root, struct sy_layer *vm, const char **detail);
void sy_detect_dmi(int root, struct sy_layer *vm, struct sy_layer *cloud);
void sy_detect_cloud(int root, struct sy_layer *cloud);
void sy_detect_container(int root, struct sy_layer *container);

#endif
