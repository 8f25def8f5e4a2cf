/* A packet of the queue is a packet of the wire: offloads off, and segments made before the queue.
 */
#ifndef STEELYARD_NETEM_KERNEL_OFFLOAD_H
#define STEELYARD_NETEM_KERNEL_OFFLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Names of the offloads that make outgoing packets larger than the MTU and are on; with `incoming`
 * also those of packets that come in, where these are shaped. A new reference. */
json_t *sy_offloads_on(const char *device, bool incoming);

/* Switch the named ones; those that the device does not have are passed over. */
int sy_offloads_set(const char *device, const json_t *names, bool on, struct sy_error *err);

/* How many segments TCP may hand this device in one piece (ip-link(8): gso_max_segs); -1: the
 * kernel does not tell. */
int64_t sy_gso_segments(const char *device);

/* Also for connections that are open already (IPv4). A kernel before 4.16 takes it and does
 * nothing: there TCP obeys the offloads. */
int sy_gso_segments_set(const char *device, int64_t segments, struct sy_error *err);

#endif
