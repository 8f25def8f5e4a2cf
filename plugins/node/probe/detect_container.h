/* The container layer: what the runtimes leave behind, weighed against where PID 1, the root mount
 * and the namespaces really are. A left-over /.dockerenv is not a container. */
#ifndef STEELYARD_PROBE_DETECT_CONTAINER_H
#define STEELYARD_PROBE_DETECT_CONTAINER_H

#include "probe/evidence.h"

/* Adds its witnesses. */
void sy_detect_container(int root, struct sy_layer *container);

#endif
