#include "netem/kernel/device.h"

#include "base/file.h"
#include "netem/kernel/rtnl.h"
#include "netem/spec/values.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define BAD_FLAGS  (RTNH_F_DEAD | RTNH_F_LINKDOWN)
#define KEPT_FLAGS (RTNH_F_ONLINK | RTNH_F_PERVASIVE) /* the kernel sets the others */

/* What a route's message has behind its header. */
struct message {
	const struct rtmsg *body;
	size_t size; /* of all, the body included */
};

static struct message read_message(const struct nlmsghdr *header)
{
	return (struct message){mnl_nlmsg_get_payload(header), mnl_nlmsg_get_payload_len(header)};
}

static const struct nlattr *find_attribute(const struct message *message, uint16_t type,
					   size_t size)
{
	return sy_rtnl_find(message->body + 1, message->size - sizeof(*message->body), type, size);
}

static uint32_t read_number(const struct message *message, uint16_t type, uint32_t otherwise)
{
	const struct nlattr *found = find_attribute(message, type, sizeof(uint32_t));

	return found ? mnl_attr_get_u32(found) : otherwise;
}

/* A route that people have made, of the main table: no copy in a cache. */
static bool is_route(const struct nlmsghdr *header)
{
	struct message message = read_message(header);

	return header->nlmsg_type == RTM_NEWROUTE && message.size >= sizeof(*message.body) &&
	       !(message.body->rtm_flags & RTM_F_CLONED) &&
	       read_number(&message, RTA_TABLE, message.body->rtm_table) == RT_TABLE_MAIN;
}

static size_t address_size(int family)
{
	return family == AF_INET ? 4 : 16;
}

static struct sy_route read_route(const struct message *message)
{
	struct sy_route route = {
	    .to = {.family = message->body->rtm_family, .prefix = message->body->rtm_dst_len},
	    .index = (int)read_number(message, RTA_OIF, 0),
	    .carries = !(message->body->rtm_flags & RTNH_F_LINKDOWN),
	};
	const struct nlattr *to = find_attribute(message, RTA_DST, address_size(route.to.family));

	if (to)
		memcpy(route.to.address, mnl_attr_get_payload(to), address_size(route.to.family));
	return route;
}

/* --- where a packet leaves --- */

static int parse_index(const struct nlmsghdr *header, void *context)
{
	struct message message = read_message(header);
	int *index = context;

	if (header->nlmsg_type == RTM_NEWROUTE && message.size >= sizeof(*message.body))
		*index = (int)read_number(&message, RTA_OIF, 0);
	return MNL_CB_OK;
}

int sy_route_find_device(const struct sy_network *host, struct sy_error *err)
{
	struct sy_rtnl room;
	struct rtmsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_GETROUTE, 0, sizeof(*body), (void **)&body);
	int index = 0, result;

	body->rtm_family = (unsigned char)host->family;
	body->rtm_dst_len = (unsigned char)host->prefix;
	mnl_attr_put(request, RTA_DST, address_size(host->family), host->address);
	result = sy_rtnl_request(request, parse_index, &index);
	if (result)
		return sy_fail_errno(err, -result, "the kernel has no route there");
	return index ? index : sy_fail(err, "the kernel has no route there");
}

struct listing {
	const struct sy_network *within;
	sy_route_visit *visit;
	void *context;
	bool ended;
};

static int parse_route(const struct nlmsghdr *header, void *context)
{
	struct listing *listing = context;
	struct message message = read_message(header);
	struct sy_route route;

	if (listing->ended || !is_route(header))
		return MNL_CB_OK;
	route = read_route(&message);
	if (sy_network_contains(listing->within, &route.to))
		listing->ended = !listing->visit(listing->context, &route);
	return MNL_CB_OK;
}

static int list_routes(int family, mnl_cb_t take, void *context)
{
	struct sy_rtnl room;
	struct rtmsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_GETROUTE, NLM_F_DUMP, sizeof(*body), (void **)&body);

	body->rtm_family = (unsigned char)family;
	return sy_rtnl_request(request, take, context);
}

int sy_routes_find_within(const struct sy_network *network, sy_route_visit *visit, void *context)
{
	struct listing listing = {network, visit, context, false};

	return list_routes(network->family, parse_route, &listing) ? -1 : 0;
}

/* --- rto_min --- */

static bool is_over_device(const struct message *message, int index)
{
	const struct nlattr *several =
	    find_attribute(message, RTA_MULTIPATH, sizeof(struct rtnexthop));
	const struct rtnexthop *hop = several ? mnl_attr_get_payload(several) : NULL;
	size_t remaining = several ? mnl_attr_get_payload_len(several) : 0;

	while (remaining >= sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) &&
	       hop->rtnh_len <= remaining) {
		size_t step = (hop->rtnh_len + 3U) & ~3U; /* RTNH_ALIGN is of signed numbers */

		if (hop->rtnh_ifindex == index)
			return true;
		remaining = step < remaining ? remaining - step : 0;
		hop = (const void *)((const char *)hop + step);
	}
	return (int)read_number(message, RTA_OIF, 0) == index;
}

static bool has_expiry(const struct message *message)
{
	const struct nlattr *found =
	    find_attribute(message, RTA_CACHEINFO, sizeof(struct rta_cacheinfo));
	struct rta_cacheinfo info;

	if (!found)
		return false;
	memcpy(&info, mnl_attr_get_payload(found), sizeof(info));
	return info.rta_expires != 0;
}

struct keeping {
	int index;
	json_t *saved;
	struct sy_error *err;
	bool failed;
};

static int parse_saved(const struct nlmsghdr *header, void *context)
{
	struct keeping *keeping = context;
	struct message message = read_message(header);
	char text[SY_UNIT_SIZE];
	struct sy_route route;

	if (keeping->failed || !is_route(header) || !is_over_device(&message, keeping->index))
		return MNL_CB_OK;
	if (!has_expiry(&message) && !(message.body->rtm_flags & BAD_FLAGS)) {
		(void)json_array_append_new(keeping->saved,
					    sy_rtnl_hex(message.body, message.size));
		return MNL_CB_OK;
	}
	route = read_route(&message);
	keeping->failed = true;
	(void)sy_fail(keeping->err, "rto_min: the route to %s cannot be put back as it is: it %s",
		      sy_format_network(&route.to, text),
		      has_expiry(&message) ? "expires" : "is not up");
	return MNL_CB_OK;
}

json_t *sy_routes_to_json(int index, struct sy_error *err)
{
	struct keeping keeping = {index, json_array(), err, false};
	int four = list_routes(AF_INET, parse_saved, &keeping);
	int six = four ? four : list_routes(AF_INET6, parse_saved, &keeping);

	if (six)
		(void)sy_fail_errno(err, -six, "rto_min: cannot list the routes");
	if (!six && !keeping.failed)
		return keeping.saved;
	json_decref(keeping.saved);
	return NULL;
}

struct change {
	struct nlmsghdr *request;
	uint32_t rto_min_ms; /* 0: as it was */
	uint32_t locked;
};

/* A locked metric is not overruled by what TCP measures: ip-route(8), `lock`. */
static int parse_metric(const struct nlattr *metric, void *context)
{
	struct change *change = context;

	if (mnl_attr_get_type(metric) == RTAX_LOCK)
		change->locked |= mnl_attr_get_u32(metric);
	else if (mnl_attr_get_type(metric) != RTAX_RTO_MIN)
		mnl_attr_put(change->request, mnl_attr_get_type(metric),
			     mnl_attr_get_payload_len(metric), mnl_attr_get_payload(metric));
	return MNL_CB_OK;
}

static void put_metrics(struct change *change, const struct nlattr *metrics)
{
	struct nlattr *nest = mnl_attr_nest_start(change->request, RTA_METRICS);

	if (metrics)
		(void)mnl_attr_parse_nested(metrics, parse_metric, change);
	mnl_attr_put_u32(change->request, RTAX_LOCK, change->locked | 1U << RTAX_RTO_MIN);
	mnl_attr_put_u32(change->request, RTAX_RTO_MIN, change->rto_min_ms);
	mnl_attr_nest_end(change->request, nest);
}

static int copy_attribute(const struct nlattr *attribute, void *context)
{
	struct change *change = context;
	uint16_t type = mnl_attr_get_type(attribute);

	if (type != RTA_CACHEINFO && (type != RTA_METRICS || !change->rto_min_ms))
		mnl_attr_put(change->request, attribute->nla_type,
			     mnl_attr_get_payload_len(attribute), mnl_attr_get_payload(attribute));
	return MNL_CB_OK;
}

static int change_route(const struct message *message, int64_t rto_min_us)
{
	struct sy_rtnl room;
	struct rtmsg *body;
	struct change change = {.request = sy_rtnl_new(&room, RTM_NEWROUTE, NLM_F_REPLACE,
						       sizeof(*body), (void **)&body),
				.rto_min_ms = (uint32_t)(rto_min_us / SY_RTO_STEP_US)};

	*body = *message->body;
	body->rtm_flags &= KEPT_FLAGS;
	(void)mnl_attr_parse_payload(message->body + 1, message->size - sizeof(*body),
				     copy_attribute, &change);
	if (change.rto_min_ms)
		put_metrics(&change, find_attribute(message, RTA_METRICS, 0));
	return sy_rtnl_request(change.request, NULL, NULL);
}

/* Change a saved route: 0, or -errno. */
static int change_saved(const json_t *saved, int64_t rto_min_us)
{
	_Alignas(struct rtmsg) uint8_t bytes[2048];
	struct message message = {(const void *)bytes, sy_rtnl_unhex(saved, bytes, sizeof(bytes))};

	return message.size < sizeof(struct rtmsg) ? -EINVAL : change_route(&message, rto_min_us);
}

int sy_routes_set(const json_t *saved, int64_t rto_min_us, struct sy_error *err)
{
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)saved, i, one)
	{
		int result = change_saved(one, rto_min_us);

		if (result)
			return sy_fail_errno(err, -result, "rto_min: cannot change a route");
	}
	return 0;
}

bool sy_routes_restore(const json_t *saved)
{
	bool all = true;
	json_t *one;
	size_t i;

	/* One that went away meanwhile does not keep the others from coming back. */
	json_array_foreach((json_t *)saved, i, one) all &= change_saved(one, 0) == 0;
	return all;
}
