/* Counters of qdiscs: messages made of bytes, and the kernel's own. */
#include "tap.h"

#include "netem/kernel/qdisc_snapshot.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

static _Alignas(struct nlmsghdr) char message[1024];
static size_t used;

static size_t add(unsigned short type, const void *data, size_t size)
{
	struct nlattr head = {(unsigned short)(sizeof(head) + size), type};
	size_t at = used;

	memcpy(message + used, &head, sizeof(head));
	memcpy(message + used + sizeof(head), data, size);
	used += (sizeof(head) + size + 3) & ~3UL;
	return at;
}

static void finish(unsigned short type)
{
	struct nlmsghdr header = {.nlmsg_len = (unsigned)used, .nlmsg_type = type};

	memcpy(message, &header, sizeof(header));
}

/* struct tc_netem_xstats of linux/pkt_sched.h, 7.2: delayed, dropped, corrupted, duplicated,
 * reordered, ecn_marked, allocation_errors. */
static const uint64_t xstats[] = {900, 12, 34, 56, 3, 7, 0};
static const void *own;
static uint64_t many_packets = 5000000000;
static size_t own_size;

/* netem 5802: on device 7, with more packets than 32 bits hold when `many`. */
static void make_message(int many)
{
	struct tcmsg body = {.tcm_ifindex = 7, .tcm_handle = 0x58020000, .tcm_parent = 0x57e10002};
	struct gnet_stats_basic basic = {.bytes = 123456789012, .packets = 1000};
	struct gnet_stats_queue queue = {.qlen = 9, .drops = 12, .requeues = 3, .overlimits = 4};
	size_t stats;
	struct nlattr head;

	memset(message, 0, sizeof(message));
	memcpy(message + NLMSG_HDRLEN, &body, sizeof(body));
	used = NLMSG_LENGTH(sizeof(body));
	(void)add(TCA_KIND, "netem", 6);
	(void)add(TCA_OPTIONS, "\1\2\3\4\5", 5);
	stats = add(TCA_STATS2 | NLA_F_NESTED, "", 0);
	/* 12 bytes, as kernels write it: the struct's tail is not sent. */
	(void)add(TCA_STATS_BASIC, &basic, 12);
	if (many)
		(void)add(TCA_STATS_PKT64, &many_packets, sizeof(many_packets));
	(void)add(TCA_STATS_QUEUE, &queue, sizeof(queue));
	if (own)
		(void)add(TCA_STATS_APP, own, own_size);
	memcpy(&head, message + stats, sizeof(head));
	head.nla_len = (unsigned short)(used - stats);
	memcpy(message + stats, &head, sizeof(head));
	finish(RTM_NEWQDISC);
}

static void test_message(void)
{
	struct sy_qdisc_counters counters;
	int device = 0;

	make_message(0);
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters) == 0,
	   "a message is read");
	is_int(device, 7, "device");
	is_string(counters.kind, "netem", "kind");
	is_int(counters.handle, 0x58020000, "handle");
	is_int(counters.parent, 0x57e10002, "parent");
	is_int(counters.sent_bytes, 123456789012, "bytes");
	is_int(counters.sent_packets, 1000, "packets");
	is_int(counters.dropped_packets, 12, "dropped");
	is_int(counters.overlimits, 4, "overlimits");
	is_int(counters.requeues, 3, "requeues");
	make_message(1);
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters) == 0,
	   "one with 64 bits of packets");
	is_int(counters.sent_packets, 5000000000, "packets");
	many_packets = UINT64_MAX - 1;
	make_message(1);
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters) == 0,
	   "one with a number that nobody has counted");
	is_int(counters.sent_packets, 1000, "is as if it were not there");
}

static void test_what_netem_counts_itself(void)
{
	struct sy_qdisc_counters counters;
	int device;

	make_message(0);
	(void)sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters);
	ok(!counters.has_xstats, "kernels until 2026 do not");
	is_int(counters.waiting_packets, 9, "waiting");
	own = xstats;
	own_size = sizeof(xstats) - 1;
	make_message(0);
	(void)sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters);
	ok(!counters.has_xstats, "what is shorter is something else");
	own_size = sizeof(xstats);
	make_message(0);
	(void)sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters);
	own = NULL;
	ok(counters.has_xstats, "newer ones do");
	is_int(counters.lost, 12, "lost");
	is_int(counters.corrupted, 34, "corrupted");
	is_int(counters.duplicated, 56, "duplicated");
	is_int(counters.reordered, 3, "reordered");
	is_int(counters.marked, 7, "marked");
}

static void test_spoilt_messages(void)
{
	struct sy_qdisc_counters counters;
	int device, accepted = 0;

	make_message(0);
	for (size_t size = 0; size < used; size++)
		accepted +=
		    sy_qdisc_parse((struct nlmsghdr *)message, size, &device, &counters) == 0;
	is_int(accepted, 0, "cut anywhere, it is none");
	for (size_t at = NLMSG_LENGTH(sizeof(struct tcmsg)); at < used; at++) {
		make_message(0);
		message[at] = (char)0xff; /* whatever the text is: nothing behind the end is read */
		(void)sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters);
	}
	make_message(0);
	((struct nlmsghdr *)message)->nlmsg_len = 0xffffffc5; /* less than 0 to libmnl */
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters) < 0,
	   "one that says it is longer than 2 GiB");
	make_message(0);
	((struct nlmsghdr *)message)->nlmsg_len = (unsigned)used - 1;
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used - 1, &device, &counters) < 0,
	   "one that ends within its last four bytes");
	make_message(0);
	finish(RTM_NEWLINK);
	ok(sy_qdisc_parse((struct nlmsghdr *)message, used, &device, &counters) < 0,
	   "of another kind");
}

static void test_sums(void)
{
	struct sy_qdisc_counters counters = {.sent_packets = 10,
					     .sent_bytes = 1000,
					     .dropped_packets = 1,
					     .overlimits = 2,
					     .requeues = 3};
	json_t *conditions = json_pack("{s:n}", "counters"), *sums;

	sy_netem_add_counters(conditions, &counters);
	sy_netem_add_counters(conditions, &counters);
	sums = json_object_get(conditions, "counters");
	is_int(json_integer_value(json_object_get(sums, "sent_packets")), 20, "packets");
	is_int(json_integer_value(json_object_get(sums, "sent_bytes")), 2000, "bytes");
	is_int(json_integer_value(json_object_get(sums, "dropped_packets")), 2, "dropped");
	is_int(json_integer_value(json_object_get(sums, "overlimits")), 4, "overlimits");
	is_int(json_integer_value(json_object_get(sums, "requeues")), 6, "requeues");
	ok(!json_object_get(sums, "duplicated_packets"), "what is not counted is not there");
	counters = (struct sy_qdisc_counters){.has_xstats = true,
					      .lost = 1,
					      .corrupted = 2,
					      .duplicated = 3,
					      .reordered = 4,
					      .marked = 5};
	sy_netem_add_counters(conditions, &counters);
	sy_netem_add_counters(conditions, &counters);
	is_int(json_integer_value(json_object_get(sums, "lost_packets")), 2, "lost");
	is_int(json_integer_value(json_object_get(sums, "corrupted_packets")), 4, "corrupted");
	is_int(json_integer_value(json_object_get(sums, "duplicated_packets")), 6, "duplicated");
	is_int(json_integer_value(json_object_get(sums, "reordered_packets")), 8, "reordered");
	is_int(json_integer_value(json_object_get(sums, "marked_packets")), 10, "marked");
	json_decref(conditions);
}

static void test_kernel(void)
{
	struct sy_qdisc_counters counters;
	struct sy_error err;

	is_int(sy_qdisc_read("lo", 0x57e20000, &counters, &err), 1, "a handle nobody has");
	is_int(sy_qdisc_read("sy-nosuch0", 0, &counters, &err), 1, "a device that is not there");
}

int main(void)
{
	test_message();
	test_what_netem_counts_itself();
	test_spoilt_messages();
	test_sums();
	test_kernel();
	return done_testing();
}
