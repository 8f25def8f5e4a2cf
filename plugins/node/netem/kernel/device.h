/* The device that a condition is for, what it can do, and its offloads (ethtool's ioctls). */
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
	int64_t speed_bit_per_s; /* 0: it does not tell */
	bool rdma;		 /* Ethernet with RDMA beside it (RoCE, iWARP): verbs pass by */
};

/* dev=, else the devices on the way to each `to`, else that of the default route: how many, or -1.
 * Refused: loopback unless named by dev=, InfiniBand and Slingshot, where all that is fast goes
 * past the kernel's queues. */
int sy_netem_devices(const struct sy_netem *spec, struct sy_netem_device *devices, int size,
		     struct sy_error *err);

/* Note in the document what of the networks of to= leaves by other devices than these. */
void sy_netem_note_others(json_t *document, const struct sy_netem *spec,
			  const struct sy_netem_device *devices, int count);

/* Whether packets to an address leave by this device; true when nobody can tell. */
bool sy_netem_leads_over(const char *address, const char *device);

/* Whether this device, or one below it (bond, VLAN), has an RDMA device beside it, by sysfs below
 * `root`. /sys may show another network namespace's devices: believed only where `index` agrees. */
bool sy_has_rdma(int root, const char *device, int index);

/* The largest window TCP may open here, from net.ipv4.tcp_rmem and tcp_wmem; 0: not known. */
int64_t sy_tcp_window_bytes(void);

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
