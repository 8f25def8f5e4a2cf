#include "netem/kernel/qdisc_counters.h"

#include "netem/kernel/rtnl.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
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
static void take_statistics(const struct rtattr *at, size_t left,
			    struct sy_qdisc_counters *counters)
{
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;
	uint64_t packets;

	for (; sy_rta_ok(at, left); at = sy_rta_next(at, &left)) {
		const char *data = RTA_DATA(at);
		size_t size = RTA_PAYLOAD(at);

		if (at->rta_type == TCA_STATS_BASIC) {
			copy_struct(&basic, sizeof(basic), data, size);
			counters->sent_bytes = (int64_t)basic.bytes;
			if (counters->sent_packets < basic.packets)
				counters->sent_packets = basic.packets;
		} else if (at->rta_type == TCA_STATS_PKT64) {
			copy_struct(&packets, sizeof(packets), data, size);
			counters->sent_packets = (int64_t)packets;
		} else if (at->rta_type == TCA_STATS_QUEUE) {
			copy_struct(&queue, sizeof(queue), data, size);
			counters->dropped_packets = queue.drops;
			counters->overlimits = queue.overlimits;
			counters->requeues = queue.requeues;
		}
	}
}

int sy_qdisc_parse(const struct nlmsghdr *header, size_t size, int *device_index,
		   struct sy_qdisc_counters *counters)
{
	const struct tcmsg *body = NLMSG_DATA(header);
	const struct rtattr *at;
	size_t left;

	if (size < NLMSG_LENGTH(sizeof(*body)) || header->nlmsg_type != RTM_NEWQDISC ||
	    header->nlmsg_len > size || header->nlmsg_len < NLMSG_LENGTH(sizeof(*body)))
		return -1;
	*counters =
	    (struct sy_qdisc_counters){.handle = body->tcm_handle, .parent = body->tcm_parent};
	*device_index = body->tcm_ifindex;
	left = header->nlmsg_len - NLMSG_LENGTH(sizeof(*body));
	for (at = TCA_RTA(body); sy_rta_ok(at, left); at = sy_rta_next(at, &left)) {
		int type = at->rta_type & NLA_TYPE_MASK;

		if (type == TCA_KIND)
			copy_struct(counters->kind, sizeof(counters->kind) - 1, RTA_DATA(at),
				    RTA_PAYLOAD(at));
		else if (type == TCA_STATS2)
			take_statistics(RTA_DATA(at), RTA_PAYLOAD(at), counters);
	}
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
	return 0;
}

int sy_qdisc_read(const char *device, uint32_t handle, struct sy_qdisc_counters *counters,
		  struct sy_error *err)
{
	struct search search = {
	    .index = (int)if_nametoindex(device), .handle = handle, .counters = counters};
	/* The dump filters by nothing but the device, and older kernels not even by that. */
	struct sy_rtnl_request request = {
	    .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
		       .nlmsg_type = RTM_GETQDISC,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .tc = {.tcm_ifindex = search.index},
	};
	int result = search.index ? sy_rtnl(&request, look_at, &search) : 0;

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
