/* Devices as rtnetlink(7) has them: ifb devices made and removed, and how large a piece TCP may
 * hand to one. */
#ifndef STEELYARD_NETEM_KERNEL_LINK_H
#define STEELYARD_NETEM_KERNEL_LINK_H

#include <stdint.h>

#include "base/error.h"

/* An ifb device of this name, up: incoming packets can be queued on it. */
int sy_ifb_make(const char *name, struct sy_error *err);
int sy_link_remove(const char *name, struct sy_error *err);

/* How many segments TCP may hand this device in one piece (ip-link(8): gso_max_segs); -1: the
 * kernel does not tell. */
int64_t sy_gso_segments(const char *device);

/* Also for connections that are open already (IPv4). A kernel before 4.16 takes it and does
 * nothing: there TCP obeys the offloads. */
int sy_gso_segments_set(const char *device, int64_t segments, struct sy_error *err);

#endif
