/* Devices, and how large the packets are that reach one's queue: ifb devices made and removed
 * (rtnetlink(7)), offloads (ethtool(8)), and how large a piece TCP may hand to a device. */
#ifndef STEELYARD_NETEM_KERNEL_LINK_H
#define STEELYARD_NETEM_KERNEL_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* An ifb device of this name, up: incoming packets can be queued on it. */
int sy_ifb_create(const char *name, struct sy_error *err);
int sy_link_remove(const char *name, struct sy_error *err);

/* How many segments TCP may hand this device in one piece (ip-link(8): gso_max_segs); -1: the
 * kernel does not report it. */
int64_t sy_gso_segments_read(const char *device);

/* Also for connections that are open already (IPv4). A kernel before 4.16 accepts it and does
 * nothing: there TCP obeys the offloads. */
int sy_gso_segments_set(const char *device, int64_t segments, struct sy_error *err);

/* Names of the offloads that make outgoing packets larger than the MTU and are on; with `incoming`
 * also those of incoming packets. A new reference. */
json_t *sy_offloads_read(const char *device, bool incoming);

/* Switch the named ones; those that the device does not have are ignored. */
int sy_offloads_set(const char *device, const json_t *names, bool on, struct sy_error *err);

#endif
