/* Counters of a qdisc, asked of the kernel by rtnetlink(7): no process is started for it. */
#ifndef STEELYARD_NETEM_KERNEL_QDISC_COUNTERS_H
#define STEELYARD_NETEM_KERNEL_QDISC_COUNTERS_H

#include <jansson.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sy_qdisc_counters {
	char kind[16]; /* "netem" */
	uint32_t handle, parent;
	int64_t sent_packets, sent_bytes; /* that left it; doubled packets count twice */
	int64_t dropped_packets;	  /* lost on purpose, or because its queue was full */
	int64_t overlimits;		  /* tbf: how often a packet had to wait */
	int64_t requeues;		  /* netem: packets sent ahead of the others (reorder) */
	int64_t waiting_packets;	  /* in its queue at this moment */
	bool has_xstats; /* those below, by the kernel's struct tc_netem_xstats (kernels of 2026) */
	int64_t lost; /* by the loss asked for; of a packet that is doubled too, one copy stays */
	int64_t corrupted, duplicated, reordered, marked; /* packets; marked: ecn= */
};

/* Those of the qdisc `handle` (0x58020000) on a device: 0; 1: there is no such qdisc (any more), or
 * no such device; -1. No right is needed. */
int sy_qdisc_read(const char *device, uint32_t handle, struct sy_qdisc_counters *counters,
		  struct sy_error *err);

/* One message of the kernel, of which `size` bytes are there: 0, or -1 when it is not about a
 * qdisc. For tests as well. */
int sy_qdisc_parse(const struct nlmsghdr *header, size_t size, int *device_index,
		   struct sy_qdisc_counters *counters);

/* Add them to the sums in `counters` of the document, which are made when there are none. Call it
 * at the end, before the undoing, once for each of our qdiscs. */
void sy_netem_add_counters(json_t *conditions, const struct sy_qdisc_counters *counters);

#endif
