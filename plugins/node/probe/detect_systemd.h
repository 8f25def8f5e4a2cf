/* systemd-detect-virt as one more witness: started without a shell, for 1 s at most. */
#ifndef STEELYARD_PROBE_DETECT_SYSTEMD_H
#define STEELYARD_PROBE_DETECT_SYSTEMD_H

#include "probe/evidence.h"

/* Ask it, with a limit of 1 s a layer. */
void sy_ask_systemd(struct sy_layer *vm, struct sy_layer *container);

#endif
