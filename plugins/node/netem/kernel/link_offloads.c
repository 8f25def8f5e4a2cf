#include "netem/kernel/device.h"

#include "base/file.h"
#include "netem/kernel/rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Since Linux 4.17 TCP makes pieces of many segments whatever the offloads are (sk_setup_caps(),
 * net/core/sock.c), and a queue loses, doubles or spoils such a piece as one packet. What it obeys
 * is the device's gso_max_segs. */

static int parse_segments(const struct nlmsghdr *header, void *context)
{
	size_t body = sizeof(struct ifinfomsg);
	const struct nlattr *found;
	int64_t *segments = context;

	if (header->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(header) < body)
		return MNL_CB_OK;
	found = sy_rtnl_find(mnl_nlmsg_get_payload_offset(header, body),
			     mnl_nlmsg_get_payload_len(header) - body, IFLA_GSO_MAX_SEGS,
			     sizeof(uint32_t));
	if (found)
		*segments = mnl_attr_get_u32(found);
	return MNL_CB_OK;
}

static struct nlmsghdr *start_request(struct sy_rtnl *room, uint16_t type, const char *device)
{
	struct ifinfomsg *body;
	struct nlmsghdr *request = sy_rtnl_new(room, type, 0, sizeof(*body), (void **)&body);

	body->ifi_index = (int)if_nametoindex(device);
	return request;
}

int64_t sy_gso_segments_read(const char *device)
{
	struct sy_rtnl room;
	int64_t segments = -1;

	return sy_rtnl_request(start_request(&room, RTM_GETLINK, device), parse_segments,
			       &segments) < 0
		   ? -1
		   : segments;
}

/* A connection keeps what its route had: a new generation of routes lets it look again (route(7),
 * ip-route(8): flush cache). */
static void renew_routes(void)
{
	cleanup_close int fd = open("/proc/sys/net/ipv4/route/flush", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "1", 1);
}

int sy_gso_segments_set(const char *device, int64_t segments, struct sy_error *err)
{
	struct sy_rtnl room;
	struct nlmsghdr *request = start_request(&room, RTM_SETLINK, device);
	int result;

	mnl_attr_put_u32(request, IFLA_GSO_MAX_SEGS, (uint32_t)segments);
	result = sy_rtnl_request(request, NULL, NULL);
	if (result)
		return sy_fail_errno(err, -result, "cannot set gso_max_segs of %s", device);
	renew_routes();
	return 0;
}

/* linux/ethtool.h: feature bits by name, each with available, requested, active. Only these let the
 * earlier state be put back exactly: the older calls (ETHTOOL_STSO) switch whole groups. */
#define BLOCKS 8 /* of 32 features each; kernels have two */

static const char *const larger_than_mtu[] = {"tx-tcp-segmentation",
					      "tx-tcp6-segmentation",
					      "tx-tcp-ecn-segmentation",
					      "tx-tcp-mangleid-segmentation",
					      "tx-generic-segmentation",
					      "tx-udp-segmentation",
					      "rx-gro",
					      "rx-gro-hw",
					      "rx-gro-list",
					      "rx-udp-gro-forwarding",
					      "rx-lro"};

struct features {
	int fd;
	struct ifreq request;
	unsigned count;
	struct ethtool_gstrings *names;
	union {
		struct ethtool_gfeatures head;
		char room[sizeof(struct ethtool_gfeatures) +
			  BLOCKS * sizeof(struct ethtool_get_features_block)];
	} now;
};

static int query_device(struct features *features, void *data)
{
	features->request.ifr_data = data;
	return ioctl(features->fd, SIOCETHTOOL, &features->request);
}

static int count_features(struct features *features)
{
	union {
		struct ethtool_sset_info head;
		char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} info = {.room = {0}};

	info.head.cmd = ETHTOOL_GSSET_INFO;
	info.head.sset_mask = 1ULL << ETH_SS_FEATURES;
	if (query_device(features, &info) < 0 || !info.head.sset_mask)
		return -1;
	features->count = info.head.data[0] < BLOCKS * 32 ? info.head.data[0] : BLOCKS * 32;
	return 0;
}

static int read_features(struct features *features, const char *device)
{
	(void)snprintf(features->request.ifr_name, IFNAMSIZ, "%s", device);
	features->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (features->fd < 0 || count_features(features) < 0)
		return -1;
	features->names =
	    calloc(1, sizeof(*features->names) + (size_t)features->count * ETH_GSTRING_LEN);
	if (!features->names)
		return -1;
	features->names->cmd = ETHTOOL_GSTRINGS;
	features->names->string_set = ETH_SS_FEATURES;
	features->names->len = features->count;
	features->now.head.cmd = ETHTOOL_GFEATURES;
	features->now.head.size = BLOCKS;
	return query_device(features, features->names) < 0 ||
		       query_device(features, &features->now) < 0
		   ? -1
		   : 0;
}

static void close_features(struct features *features)
{
	if (features->fd >= 0)
		(void)close(features->fd);
	free(features->names);
}

static int find_bit(const struct features *features, const char *name)
{
	const char *names = (const char *)features->names->data;

	for (unsigned i = 0; i < features->count; i++)
		if (!strncmp(names + i * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN))
			return (int)i;
	return -1;
}

json_t *sy_offloads_read(const char *device, bool incoming)
{
	__attribute__((cleanup(close_features))) struct features features = {.fd = -1};
	json_t *names = json_array();

	if (read_features(&features, device) < 0)
		return names;
	for (size_t i = 0; i < sizeof(larger_than_mtu) / sizeof(larger_than_mtu[0]); i++) {
		int bit = find_bit(&features, larger_than_mtu[i]);
		const struct ethtool_get_features_block *block =
		    &features.now.head.features[bit < 0 ? 0 : bit / 32];

		if (!incoming && !strncmp(larger_than_mtu[i], "rx-", 3))
			continue;
		if (bit >= 0 &&
		    block->active & block->available & ~block->never_changed & 1U << bit % 32)
			(void)json_array_append_new(names, json_string(larger_than_mtu[i]));
	}
	return names;
}

int sy_offloads_set(const char *device, const json_t *names, bool on, struct sy_error *err)
{
	__attribute__((cleanup(close_features))) struct features features = {.fd = -1};
	union {
		struct ethtool_sfeatures head;
		char room[sizeof(struct ethtool_sfeatures) +
			  BLOCKS * sizeof(struct ethtool_set_features_block)];
	} wanted = {.room = {0}};
	json_t *name;
	size_t i;

	if (!json_array_size(names))
		return 0;
	if (read_features(&features, device) < 0)
		return sy_fail_errno(err, errno, "cannot read the offloads of %s", device);
	json_array_foreach((json_t *)names, i, name)
	{
		int bit =
		    find_bit(&features, json_string_value(name) ? json_string_value(name) : "");

		if (bit < 0)
			continue;
		wanted.head.features[bit / 32].valid |= 1U << bit % 32;
		wanted.head.features[bit / 32].requested |= on ? 1U << bit % 32 : 0;
	}
	wanted.head.cmd = ETHTOOL_SFEATURES;
	wanted.head.size = (features.count + 31) / 32;
	if (query_device(&features, &wanted) < 0)
		return sy_fail_errno(err, errno, "cannot switch the offloads of %s", device);
	return 0;
}
