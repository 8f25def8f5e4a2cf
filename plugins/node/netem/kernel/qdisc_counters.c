#include "netem/kernel/qdisc_counters.h"

#include "base/kernel.h"
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

/* linux/gen_stats.h. TCA_STATS_BASIC has 32 bits of packets; where they are not enough, the kernel
 * adds TCA_STATS_PKT64 (since 5.5). */
static int take_statistics(const struct nlattr *attribute, void *context)
{
	struct sy_qdisc_counters *counters = context;
	const char *data = mnl_attr_get_payload(attribute);
	size_t size = mnl_attr_get_payload_len(attribute);
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;
	uint64_t packets;

	if (mnl_attr_get_type(attribute) == TCA_STATS_BASIC) {
		copy_struct(&basic, sizeof(basic), data, size);
		counters->sent_bytes = (int64_t)basic.bytes;
		if (counters->sent_packets < basic.packets)
			counters->sent_packets = basic.packets;
	} else if (mnl_attr_get_type(attribute) == SY_TCA_STATS_PKT64) {
		copy_struct(&packets, sizeof(packets), data, size);
		counters->sent_packets = (int64_t)packets;
	} else if (mnl_attr_get_type(attribute) == TCA_STATS_QUEUE) {
		copy_struct(&queue, sizeof(queue), data, size);
		counters->dropped_packets = queue.drops;
		counters->overlimits = queue.overlimits;
		counters->requeues = queue.requeues;
	}
	return MNL_CB_OK;
}

static int take_attribute(const struct nlattr *attribute, void *context)
{
	struct sy_qdisc_counters *counters = context;

	if (mnl_attr_get_type(attribute) == TCA_KIND)
		copy_struct(counters->kind, sizeof(counters->kind) - 1,
			    mnl_attr_get_payload(attribute), mnl_attr_get_payload_len(attribute));
	else if (mnl_attr_get_type(attribute) == TCA_STATS2)
		(void)mnl_attr_parse_nested(attribute, take_statistics, counters);
	return MNL_CB_OK;
}

int sy_qdisc_parse(const struct nlmsghdr *header, size_t size, int *device_index,
		   struct sy_qdisc_counters *counters)
{
	const struct tcmsg *body = mnl_nlmsg_get_payload(header);

	/* libmnl takes a length of 2 GiB and more for a negative one. */
	if (!mnl_nlmsg_ok(header, (int)size) || header->nlmsg_len > size ||
	    header->nlmsg_type != RTM_NEWQDISC || mnl_nlmsg_get_payload_len(header) < sizeof(*body))
		return -1;
	*counters =
	    (struct sy_qdisc_counters){.handle = body->tcm_handle, .parent = body->tcm_parent};
	*device_index = body->tcm_ifindex;
	(void)mnl_attr_parse(header, sizeof(*body), take_attribute, counters);
	return 0;
}

struct search {
	int index;
	uint32_t handle;
	bool found;
	struct sy_qdisc_counters *counters;
};

static int look_at(const struct nlmsghdr *header, void *context)
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
	result = search.index ? sy_rtnl_ask(request, look_at, &search) : 0;
	if (result)
		return sy_fail_errno(err, -result, "cannot read the qdiscs of %s", device);
	return !search.found;
}

static void add(json_t *sums, const char *key, int64_t value)
{
	int64_t sum = json_integer_value(json_object_get(sums, key)) + value;

	(void)json_object_set_new(sums, key, json_integer(sum));
}

void sy_netem_count(json_t *conditions, const struct sy_qdisc_counters *counters)
{
	json_t *sums = json_object_get(conditions, "counters");

	if (!json_is_object(sums)) {
		sums = json_object();
		(void)json_object_set_new(conditions, "counters", sums);
	}
	add(sums, "sent_packets", counters->sent_packets);
	add(sums, "sent_bytes", counters->sent_bytes);
	add(sums, "dropped_packets", counters->dropped_packets);
	add(sums, "overlimits", counters->overlimits);
	add(sums, "requeues", counters->requeues);
}
