/* rto_min= : the least retransmission time-out of TCP stands in the route (ip-route(8)). */
#ifndef STEELYARD_NETEM_KERNEL_ROUTE_H
#define STEELYARD_NETEM_KERNEL_ROUTE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* The routes of the main table over a device, as `ip route show` has them: [{family, text}].
 * NULL with a sentence when one could not be put back as it is (it expires, or is not up). */
json_t *sy_routes_of(const char *device, struct sy_error *err);

int sy_routes_set(const json_t *routes, int64_t rto_min_us, struct sy_error *err);

/* Put them back, those that still exist: whether that was all of them. */
bool sy_routes_restore(const json_t *routes);

#endif
