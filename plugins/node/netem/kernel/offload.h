/* A packet of the queue is a packet of the wire: offloads off (link.h: and segments made
 * before it). */
#ifndef STEELYARD_NETEM_KERNEL_OFFLOAD_H
#define STEELYARD_NETEM_KERNEL_OFFLOAD_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* Names of the offloads that make outgoing packets larger than the MTU and are on; with `incoming`
 * also those of packets that come in, where these are shaped. A new reference. */
json_t *sy_offloads_on(const char *device, bool incoming);

/* Switch the named ones; those that the device does not have are passed over. */
int sy_offloads_set(const char *device, const json_t *names, bool on, struct sy_error *err);

#endif
