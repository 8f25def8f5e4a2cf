/* The queueing disciplines of a device as the kernel has them (rtnetlink(7)), and putting one back
 * with exactly the options it had: what the kernel dumps of a plain scheduler is what it takes. */
#ifndef STEELYARD_NETEM_KERNEL_QDISC_SNAPSHOT_H
#define STEELYARD_NETEM_KERNEL_QDISC_SNAPSHOT_H

#include <jansson.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/spec/spec.h"

struct sy_qdisc {
	uint32_t handle, parent; /* linux/pkt_sched.h: TC_H_… */
	char kind[16];
	uint8_t *options; /* TCA_OPTIONS as it came */
	size_t options_size;
};

struct sy_qdiscs {
	struct sy_qdisc *item;
	size_t count;
};

void sy_cleanup_qdiscs(struct sy_qdiscs *list);
#define cleanup_qdiscs __attribute__((cleanup(sy_cleanup_qdiscs)))

int sy_qdiscs_read(int index, struct sy_qdiscs *list, struct sy_error *err);
const struct sy_qdisc *sy_qdisc_by_parent(const struct sy_qdiscs *list, uint32_t parent);
const struct sy_qdisc *sy_qdisc_by_handle(const struct sy_qdiscs *list, uint32_t handle);

/* The root qdisc of a device. */
enum sy_root {
	SY_ROOT_DEFAULT, /* the kernel's own choice: comes back when ours is deleted */
	SY_ROOT_PLAIN,	 /* a scheduler without filters or shaping: put back by us */
	SY_ROOT_OURS,
	SY_ROOT_FOREIGN, /* another program shapes this device */
};
enum sy_root sy_qdiscs_find_root(const struct sy_qdiscs *list);

/* What must be put back, as JSON for the state: [{parent, handle, kind, options (hex)}]. */
json_t *sy_qdiscs_to_json(const struct sy_qdiscs *list);
int sy_qdiscs_restore(int index, const json_t *saved, struct sy_error *err);

/* Have a netem qdisc begin its random numbers from `seed`: its own options once more, and the seed.
 * Kernels before 6.6 ignore it, which sy_qdisc_read_spec() shows. */
int sy_qdisc_seed(int index, const struct sy_qdisc *qdisc, int64_t seed, struct sy_error *err);

/* The kernel's report of a netem or tbf qdisc of ours, into the fields of a specification; a
 * value that differs from `spec` only by the kernel's rounding is set to the requested one. */
void sy_qdisc_read_spec(const struct sy_qdisc *qdisc, struct sy_netem *spec);

/* True when the qdisc `handle` of a device is as `spec` requests. */
bool sy_qdisc_has_spec(int index, uint32_t handle, const struct sy_netem *spec);

/* Counters of a qdisc, from the kernel by rtnetlink(7): no process is started for it. */

struct sy_qdisc_counters {
	char kind[16]; /* "netem" */
	uint32_t handle, parent;
	int64_t sent_packets, sent_bytes; /* that left it; doubled packets count twice */
	int64_t dropped_packets;	  /* lost on purpose, or because its queue was full */
	int64_t overlimits;		  /* tbf: how often a packet had to wait */
	int64_t requeues;		  /* netem: packets sent ahead of the others (reorder) */
	int64_t waiting_packets;	  /* in its queue at this moment */
	bool has_xstats; /* those below, by the kernel's struct tc_netem_xstats (kernels of 2026) */
	int64_t
	    lost; /* by the requested loss; of a packet that is also duplicated one copy stays */
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
