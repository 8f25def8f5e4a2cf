/* The device that a condition is for, and what it can do. */
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
	bool rdma;		 /* Ethernet with RDMA beside it (RoCE, iWARP): verbs pass by */
};

/* dev=, else the devices on the way to each `to`, else that of the default route: how many, or -1.
 * Refused: loopback unless named by dev=, InfiniBand and Slingshot, where all that is fast goes
 * past the kernel's queues. */
int sy_netem_find_devices(const struct sy_netem *spec, struct sy_netem_device *devices, int size,
			  struct sy_error *err);

/* Note in the document what of the networks of to= leaves by other devices than these. */
void sy_netem_note_others(json_t *document, const struct sy_netem *spec,
			  const struct sy_netem_device *devices, int count);

/* Whether packets to an address leave by this device; true when it is unknown. */
bool sy_netem_is_routed_over(const char *address, const char *device);

/* Whether this device, or one below it (bond, VLAN), has an RDMA device beside it, by sysfs below
 * `root`. /sys may show another network namespace's devices: believed only where `index` agrees. */
bool sy_has_rdma(int root, const char *device, int index);

/* The largest window TCP may open here, from net.ipv4.tcp_rmem and tcp_wmem; 0: not known. */
int64_t sy_tcp_window_read(void);

#endif
