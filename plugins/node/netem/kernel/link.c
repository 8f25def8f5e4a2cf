#include "netem/kernel/link.h"

#include "base/file.h"
#include "netem/kernel/rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

int sy_ifb_make(const char *name, struct sy_error *err)
{
	struct sy_rtnl room;
	struct ifinfomsg *body;
	struct nlmsghdr *request = sy_rtnl_new(&room, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
					       sizeof(*body), (void **)&body);
	struct nlattr *kind;
	int result;

	body->ifi_flags = body->ifi_change = IFF_UP;
	mnl_attr_put_strz(request, IFLA_IFNAME, name);
	kind = mnl_attr_nest_start(request, IFLA_LINKINFO);
	mnl_attr_put_strz(request, IFLA_INFO_KIND, "ifb");
	mnl_attr_nest_end(request, kind);
	result = sy_rtnl_ask(request, NULL, NULL);
	return result ? sy_fail_errno(err, -result, "cannot make %s, a device of type ifb", name)
		      : 0;
}

int sy_link_remove(const char *name, struct sy_error *err)
{
	struct sy_rtnl room;
	struct ifinfomsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_DELLINK, 0, sizeof(*body), (void **)&body);
	int result;

	mnl_attr_put_strz(request, IFLA_IFNAME, name);
	result = sy_rtnl_ask(request, NULL, NULL);
	return result && result != -ENODEV
		   ? sy_fail_errno(err, -result, "cannot remove our device %s", name)
		   : 0;
}

/* Since Linux 4.17 TCP makes pieces of many segments whatever the offloads say (sk_setup_caps(),
 * net/core/sock.c), and a queue loses, doubles or spoils such a piece as one packet. What it obeys
 * is the device's gso_max_segs. */

static int take_segments(const struct nlmsghdr *header, void *context)
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

static struct nlmsghdr *about_link(struct sy_rtnl *room, uint16_t type, const char *device)
{
	struct ifinfomsg *body;
	struct nlmsghdr *request = sy_rtnl_new(room, type, 0, sizeof(*body), (void **)&body);

	body->ifi_index = (int)if_nametoindex(device);
	return request;
}

int64_t sy_gso_segments(const char *device)
{
	struct sy_rtnl room;
	int64_t segments = -1;

	return sy_rtnl_ask(about_link(&room, RTM_GETLINK, device), take_segments, &segments) < 0
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
	struct nlmsghdr *request = about_link(&room, RTM_SETLINK, device);
	int result;

	mnl_attr_put_u32(request, IFLA_GSO_MAX_SEGS, (uint32_t)segments);
	result = sy_rtnl_ask(request, NULL, NULL);
	if (result)
		return sy_fail_errno(err, -result, "cannot set gso_max_segs of %s", device);
	renew_routes();
	return 0;
}
