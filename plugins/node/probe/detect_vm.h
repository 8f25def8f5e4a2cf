/* The machine layer: what the hypervisor, the firmware and the kernel leave to be seen. */
#ifndef STEELYARD_PROBE_DETECT_VM_H
#define STEELYARD_PROBE_DETECT_VM_H

#include "probe/evidence.h"

/* Adds its witnesses; `detail` as in struct sy_virtualization. */
void sy_detect_vm(int root, struct sy_layer *vm, const char **detail);

#endif
