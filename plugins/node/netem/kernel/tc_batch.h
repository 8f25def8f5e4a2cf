/* Room netem/kernel: what a condition is in this kernel. This header plans: from a specification to
 * the lines of `tc -batch`. It is text only; the kernel is not touched. device.h finds the devices
 * and their offloads and routes, qdisc_snapshot.h and rtnl.h read queues and put them back,
 * job_scope.h attaches the program of scope job, delay_tables.h opens root's files. Who calls them,
 * in which order, and what is undone: netem.h.
 *
 * One classful root of ours per device, with a band per condition, at most 15:
 *
 *   57e1: prio (htb where the kernel has no sch_prio)
 *   ├─ 57e1:1    what is not shaped: the default of every packet
 *   ├─ 57e1:2 ── 5802: netem or tbf    a condition
 *   └─ 57e1:3 ── 5803: …
 *
 * Scope node (an exclusive node, or no scheduler): packets come to a band by u32 filters. Scope job
 * (a shared node): a program on the job's cgroup has written the band into their priority, which
 * prio and htb obey before any filter. Incoming packets (scope node only) go through an ifb device.
 *
 * Never shaped: ARP and all that is not IP, protected networks and ssh. Refused as a device:
 * loopback unless dev= names it, InfiniBand and Slingshot, whose traffic bypasses the kernel's
 * queues. The room does not decide what is allowed (policy/), when something is undone (undo.h), or
 * whether a run is valid (verify/).
 *
 * Sources: tc-prio(8), tc-htb(8), tc-u32(8), tc-netem(8), tc-tbf(8), tc-mirred(8). */
#ifndef STEELYARD_NETEM_KERNEL_TC_BATCH_H
#define STEELYARD_NETEM_KERNEL_TC_BATCH_H

#include "netem/spec/spec.h"

#define SY_ROOT_MAJOR  0x57e1u
#define SY_CHILD_MAJOR 0x5800u /* + the band */
#define SY_FIRST_BAND  2u
#define SY_LAST_BAND   16u /* prio has at most 16 bands: TCQ_PRIO_BANDS */

/* The type of service of our own echo requests, by which the node that answers knows them; answers
 * carry it as well (Linux: icmp_reply, icmpv6_echo_reply, the RST to a SYN). DSCP 43, one of those
 * for local use: RFC 2474, 6. */
#define SY_ECHO_TOS 0xac

/* One device in one direction. */
struct sy_placement {
	char device[SY_DEVICE_SIZE];
	int index;		     /* the interface's */
	enum sy_direction direction; /* SY_EGRESS or SY_INGRESS */
	char ifb[SY_DEVICE_SIZE];    /* ingress: our device that incoming packets go through */
	unsigned band;
	bool first;	/* the root is not there yet */
	bool htb;	/* instead of prio */
	bool tbf;	/* instead of netem: a rate alone */
	bool by_cgroup; /* scope job: no filters */
	int condition;	/* number in the job's list of conditions */
	int64_t mtu, limit_packets;
};

/* How many packets may wait: the requested limit, or 1.5 × rate × (delay + jitter) / MTU, and no
 * less than netem's own 1000. Without rate= the device's speed counts (0: unknown, 10 gbit are
 * assumed), and a TCP window (`window_bytes`) fits, so that nothing is dropped. */
int64_t sy_plan_limit(const struct sy_netem *spec, int64_t mtu, int64_t speed_bit_per_s,
		      int64_t window_bytes);

/* Each: lines for `tc -batch`, allocated; NULL: out of memory. sy_plan_change(): other parameters
 * of an existing qdisc; a missing one is not made. */
char *sy_plan_apply(const struct sy_netem *spec, const struct sy_placement *placement,
		    const struct sy_network *protect, int protected_count);
char *sy_plan_change(const struct sy_netem *spec, const struct sy_placement *placement);
char *sy_plan_undo(const struct sy_placement *placement, bool last);

/* Whether two specifications could claim the same packet (ports are not looked at). */
bool sy_plan_overlap(const struct sy_netem *a, const struct sy_netem *b);

#endif
