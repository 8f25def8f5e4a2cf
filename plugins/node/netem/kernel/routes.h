/* Routes of the kernel's main table: where a packet leaves, and TCP's rto_min, which stands in them
 * (rtnetlink(7), ip-route(8)). */
#ifndef STEELYARD_NETEM_KERNEL_ROUTES_H
#define STEELYARD_NETEM_KERNEL_ROUTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/spec/spec.h"

struct sy_route {
	struct sy_network to; /* prefix 0: the default route */
	int index;	      /* the device's; 0: it has none, or several */
	bool carries;	      /* its device has a carrier */
};

/* The device by which packets to this address leave: its index, or -1. */
int sy_route_find_device(const struct sy_network *host, struct sy_error *err);

/* Called for each: false ends it. */
typedef bool sy_route_see(void *context, const struct sy_route *route);

/* Every route to a network inside of this one: 0, or -1. */
int sy_routes_find_within(const struct sy_network *network, sy_route_see *see, void *context);

/* The routes over a device, as the kernel dumps them (hex), for the state. NULL with a sentence
 * when one could not be put back as it is (it expires, or is not up). */
json_t *sy_routes_to_json(int index, struct sy_error *err);

int sy_routes_set(const json_t *kept, int64_t rto_min_us, struct sy_error *err);

/* Put them back, those that still exist: whether that was all of them. */
bool sy_routes_restore(const json_t *kept);

#endif
