#include "netem/kernel/qdisc_snapshot.h"

#include "base/kernel_uapi.h"
#include "netem/kernel/rtnl.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

/* An older or newer kernel's struct may be shorter or longer than ours. */
static void copy_struct(void *to, size_t room, const char *data, size_t size)
{
	memset(to, 0, room);
	memcpy(to, data, size < room ? size : room);
}

/* struct tc_netem_xstats of linux/pkt_sched.h, which the headers that we are built with lack. */
struct netem_xstats {
	uint64_t delayed, dropped, corrupted, duplicated, reordered, ecn_marked, allocation_errors;
};

/* No kernel has counted so far: such a number is none. */
static void set_counter(int64_t *to, uint64_t value)
{
	if (value <= INT64_MAX)
		*to = (int64_t)value;
}

/* Only for netem: other qdiscs have other counters there. */
static void parse_netem_xstats(struct sy_qdisc_counters *counters, const char *data, size_t size)
{
	struct netem_xstats own;

	if (size < sizeof(own))
		return;
	memcpy(&own, data, sizeof(own));
	counters->has_xstats = true;
	set_counter(&counters->lost, own.dropped);
	set_counter(&counters->corrupted, own.corrupted);
	set_counter(&counters->duplicated, own.duplicated);
	set_counter(&counters->reordered, own.reordered);
	set_counter(&counters->marked, own.ecn_marked);
}

/* linux/gen_stats.h. TCA_STATS_BASIC has 32 bits of packets; where they are not enough, the kernel
 * adds TCA_STATS_PKT64 (since 5.5). */
static int parse_statistics(const struct nlattr *attribute, void *context)
{
	struct sy_qdisc_counters *counters = context;
	const char *data = mnl_attr_get_payload(attribute);
	size_t size = mnl_attr_get_payload_len(attribute);
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;
	uint64_t packets;

	if (mnl_attr_get_type(attribute) == TCA_STATS_BASIC) {
		copy_struct(&basic, sizeof(basic), data, size);
		set_counter(&counters->sent_bytes, basic.bytes);
		if (counters->sent_packets < basic.packets)
			counters->sent_packets = basic.packets;
	} else if (mnl_attr_get_type(attribute) == SY_TCA_STATS_PKT64) {
		copy_struct(&packets, sizeof(packets), data, size);
		set_counter(&counters->sent_packets, packets);
	} else if (mnl_attr_get_type(attribute) == TCA_STATS_QUEUE) {
		copy_struct(&queue, sizeof(queue), data, size);
		counters->dropped_packets = queue.drops;
		counters->overlimits = queue.overlimits;
		counters->requeues = queue.requeues;
		counters->waiting_packets = queue.qlen;
	} else if (mnl_attr_get_type(attribute) == TCA_STATS_APP &&
		   !strcmp(counters->kind, "netem")) {
		parse_netem_xstats(counters, data, size);
	}
	return MNL_CB_OK;
}

static int parse_attribute(const struct nlattr *attribute, void *context)
{
	struct sy_qdisc_counters *counters = context;

	if (mnl_attr_get_type(attribute) == TCA_KIND)
		copy_struct(counters->kind, sizeof(counters->kind) - 1,
			    mnl_attr_get_payload(attribute), mnl_attr_get_payload_len(attribute));
	else if (mnl_attr_get_type(attribute) == TCA_STATS2)
		(void)mnl_attr_parse_nested(attribute, parse_statistics, counters);
	return MNL_CB_OK;
}

int sy_qdisc_parse(const struct nlmsghdr *header, size_t size, int *device_index,
		   struct sy_qdisc_counters *counters)
{
	const struct tcmsg *body = mnl_nlmsg_get_payload(header);

	/* libmnl takes a length of 2 GiB and more for a negative one, and reads on to a whole four
	 * bytes, with which every message of the kernel ends. */
	if (!mnl_nlmsg_ok(header, (int)size) || header->nlmsg_len > size ||
	    header->nlmsg_len % 4U || header->nlmsg_type != RTM_NEWQDISC ||
	    mnl_nlmsg_get_payload_len(header) < sizeof(*body))
		return -1;
	*counters =
	    (struct sy_qdisc_counters){.handle = body->tcm_handle, .parent = body->tcm_parent};
	*device_index = body->tcm_ifindex;
	(void)mnl_attr_parse(header, sizeof(*body), parse_attribute, counters);
	return 0;
}

struct search {
	int index;
	uint32_t handle;
	bool found;
	struct sy_qdisc_counters *counters;
};

static int parse_matching(const struct nlmsghdr *header, void *context)
{
	struct search *search = context;
	struct sy_qdisc_counters one;
	int device;

	if (sy_qdisc_parse(header, header->nlmsg_len, &device, &one) == 0 &&
	    device == search->index && one.handle == search->handle) {
		*search->counters = one;
		search->found = true;
	}
	return MNL_CB_OK;
}

int sy_qdisc_read(const char *device, uint32_t handle, struct sy_qdisc_counters *counters,
		  struct sy_error *err)
{
	struct search search = {
	    .index = (int)if_nametoindex(device), .handle = handle, .counters = counters};
	struct sy_rtnl room;
	struct tcmsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_GETQDISC, NLM_F_DUMP, sizeof(*body), (void **)&body);
	int result;

	/* The dump filters by nothing but the device, and older kernels not even by that. */
	body->tcm_ifindex = search.index;
	result = search.index ? sy_rtnl_request(request, parse_matching, &search) : 0;
	if (result)
		return sy_fail_errno(err, -result, "cannot read the qdiscs of %s", device);
	return !search.found;
}

static void add_counter(json_t *sums, const char *key, int64_t value)
{
	int64_t sum = json_integer_value(json_object_get(sums, key)) + value;

	(void)json_object_set_new(sums, key, json_integer(sum));
}

void sy_netem_add_counters(json_t *conditions, const struct sy_qdisc_counters *counters)
{
	json_t *sums = json_object_get(conditions, "counters");

	if (!json_is_object(sums)) {
		sums = json_object();
		(void)json_object_set_new(conditions, "counters", sums);
	}
	add_counter(sums, "sent_packets", counters->sent_packets);
	add_counter(sums, "sent_bytes", counters->sent_bytes);
	add_counter(sums, "dropped_packets", counters->dropped_packets);
	add_counter(sums, "overlimits", counters->overlimits);
	add_counter(sums, "requeues", counters->requeues);
	add_counter(sums, "waiting_packets", counters->waiting_packets);
	if (!counters->has_xstats)
		return;
	add_counter(sums, "lost_packets", counters->lost);
	add_counter(sums, "corrupted_packets", counters->corrupted);
	add_counter(sums, "duplicated_packets", counters->duplicated);
	add_counter(sums, "reordered_packets", counters->reordered);
	add_counter(sums, "marked_packets", counters->marked);
}
