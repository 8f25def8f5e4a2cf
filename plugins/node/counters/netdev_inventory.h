/* The network devices of this node: what each one is, and which ones count as its uplinks.
 *
 * Source: Documentation/ABI/testing/sysfs-class-net of the kernel. */
#ifndef STEELYARD_COUNTERS_NETDEV_INVENTORY_H
#define STEELYARD_COUNTERS_NETDEV_INVENTORY_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SY_NETDEV_MAX 512

enum sy_netdev_kind {
	SY_NETDEV_UNKNOWN,
	SY_NETDEV_LOOPBACK,
	SY_NETDEV_PHYSICAL,
	SY_NETDEV_VIRTIO,
	SY_NETDEV_SRIOV_VF,
	SY_NETDEV_INFINIBAND,
	SY_NETDEV_PARAVIRTUAL, /* vmxnet3, xen-netfront, hv_netvsc, ena, gve, … */
	SY_NETDEV_UML,
	SY_NETDEV_BOND,
	SY_NETDEV_BRIDGE,
	SY_NETDEV_VETH,
	SY_NETDEV_MACVLAN,
	SY_NETDEV_IPVLAN,
	SY_NETDEV_TUN,
	SY_NETDEV_VLAN,
	SY_NETDEV_DUMMY,
	SY_NETDEV_KINDS
};

struct sy_netdev {
	char name[IFNAMSIZ];
	enum sy_netdev_kind kind;
	bool counted;		  /* an uplink: the node's traffic is the sum over these */
	char driver[32];	  /* "" when the device has none */
	char mac[64];		  /* "" when it could not be read */
	char state[16];		  /* operstate: "up", "down", "unknown", …; "" as above */
	int64_t speed_bits_per_s; /* -1: the device does not report it */
	int64_t mtu;		  /* -1: could not be read */
	int64_t index;		  /* interface index, -1 as above */
	bool stacked;		  /* is above another device of this namespace */
	char master[IFNAMSIZ];	  /* the bond, bridge, … it belongs to, or "" */
};

/* Find the devices below `root` (its network namespace), `lo` too, sorted by name. Returns how
 * many; when 0, `err` says why. Never more than `capacity`: the rest is left out, and `err` says
 * so.
 *
 * Counted are physical, virtio, sriov-vf, infiniband, paravirtual and uml devices, and bonds
 * instead of their slaves; what is above or beside them (bridges, vlan, veth, tunnels) carries
 * the same bytes again. Where there is none of those, as seen from inside a container, the veth,
 * macvlan, ipvlan and tun devices that belong to no bridge are. */
int sy_netdev_find(int root, struct sy_netdev *devices, size_t capacity, struct sy_error *err);

/* The kind's name in the JSON files: "sriov-vf". */
const char *sy_netdev_kind_name(enum sy_netdev_kind kind);

#endif
