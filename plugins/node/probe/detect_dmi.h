/* What the firmware says (DMI), for the machine layer and for the cloud product. */
#ifndef STEELYARD_PROBE_DETECT_DMI_H
#define STEELYARD_PROBE_DETECT_DMI_H

#include "probe/evidence.h"

/* Both add their witnesses. */
void sy_detect_dmi(int root, struct sy_layer *vm, struct sy_layer *cloud);
void sy_detect_cloud(int root, struct sy_layer *cloud);

#endif
