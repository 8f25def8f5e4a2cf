/* The device that a condition is for, and what it can do: its MTU, speed, RDMA, offloads and
 * routes. The room's head is tc_batch.h. */
#ifndef STEELYARD_NETEM_KERNEL_DEVICE_H
#define STEELYARD_NETEM_KERNEL_DEVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/spec/spec.h"

struct sy_netem_device {
	char name[SY_DEVICE_SIZE];
	int index;
	int64_t mtu;
	int64_t speed_bit_per_s; /* 0: unknown */
	bool rdma;		 /* Ethernet with RDMA (RoCE, iWARP): verbs bypass the kernel */
};

/* dev=, else the devices on the way to each `to`, else that of the default route: how many, or -1.
 * Refused: loopback unless named by dev=, InfiniBand and Slingshot, where all that is fast goes
 * past the kernel's queues. */
int sy_netem_find_devices(const struct sy_netem *spec, struct sy_netem_device *devices, int size,
			  struct sy_error *err);

/* Note in the document what of the networks of to= leaves by other devices than these. */
void sy_netem_note_other_routes(json_t *document, const struct sy_netem *spec,
				const struct sy_netem_device *devices, int count);

/* Whether packets to an address leave by this device; true when it is unknown. */
bool sy_netem_is_routed_over(const char *address, const char *device);

/* True when this device, or one below it (bond, VLAN), has an RDMA device, by sysfs below `root`.
 * /sys may show another network namespace's devices: accepted only where `index` agrees. */
bool sy_has_rdma(int root, const char *device, int index);

/* The largest window TCP may open here, from net.ipv4.tcp_rmem and tcp_wmem; 0: not known. */
int64_t sy_tcp_window_read(void);

/* Devices, and how large the packets are that reach one's queue: ifb devices made and removed
 * (rtnetlink(7)), offloads (ethtool(8)), and how large a piece TCP may hand to a device. */

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

/* Routes of the kernel's main table: where a packet leaves, and TCP's rto_min, which is part of
 * them (rtnetlink(7), ip-route(8)). */

struct sy_route {
	struct sy_network to; /* prefix 0: the default route */
	int index;	      /* the device's; 0: it has none, or several */
	bool carries;	      /* its device has a carrier */
};

/* The device by which packets to this address leave: its index, or -1. */
int sy_route_find_device(const struct sy_network *host, struct sy_error *err);

/* Called for each: false ends it. */
typedef bool sy_route_visit(void *context, const struct sy_route *route);

/* Every route to a network inside of this one: 0, or -1. */
int sy_routes_find_within(const struct sy_network *network, sy_route_visit *visit, void *context);

/* The routes over a device, as the kernel dumps them (hex), for the state. NULL with a sentence
 * when one could not be put back as it is (it expires, or is not up). */
json_t *sy_routes_to_json(int index, struct sy_error *err);

int sy_routes_set(const json_t *saved, int64_t rto_min_us, struct sy_error *err);

/* Put them back, those that still exist: whether that was all of them. */
bool sy_routes_restore(const json_t *saved);

#endif
