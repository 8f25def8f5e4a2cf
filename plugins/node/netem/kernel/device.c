#include "netem/kernel/device.h"

#include "base/json_document.h"
#include "base/file.h"
#include "netem/kernel/rtnl.h"
#include "netem/spec/values.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define MBIT	     1000000LL
#define LEVELS_BELOW 3 /* a VLAN on a bond on a card */

static int64_t read_speed(int fd, struct ifreq *request)
{
	struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
	uint32_t speed;

	request->ifr_data = (char *)&settings;
	if (ioctl(fd, SIOCETHTOOL, request) < 0)
		return 0;
	speed = ethtool_cmd_speed(&settings);
	return speed == (uint32_t)SPEED_UNKNOWN || speed == UINT16_MAX ? 0 : speed * MBIT;
}

static bool has_driver(int fd, struct ifreq *request, const char *driver)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

	request->ifr_data = (char *)&info;
	return ioctl(fd, SIOCETHTOOL, request) == 0 &&
	       !strncmp(info.driver, driver, sizeof(info.driver));
}

/* docs.kernel.org/networking/bonding, 8021q: `lower_NAME` leads to each device below. */
static bool has_rdma_below(int root, const char *folder, int levels)
{
	cleanup_names struct sy_names names = {0};
	char path[320];
	bool found;

	(void)snprintf(path, sizeof(path), "%s/device/infiniband", folder);
	found = sy_exists_at(root, path);
	if (found || !levels || sy_list_at(root, folder, &names) < 0)
		return found;
	for (size_t i = 0; i < names.count && !found; i++) {
		if (strncmp(names.name[i], "lower_", 6))
			continue;
		(void)snprintf(path, sizeof(path), "/sys/class/net/%s", names.name[i] + 6);
		found = has_rdma_below(root, path, levels - 1);
	}
	return found;
}

bool sy_has_rdma(int root, const char *device, int index)
{
	char path[96];
	int64_t shown;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", device);
	if (sy_read_int_at(root, path, &shown) < 0 || shown != index)
		return false;
	(void)snprintf(path, sizeof(path), "/sys/class/net/%s", device);
	return has_rdma_below(root, path, LEVELS_BELOW);
}

static int refuse_bypass(int fd, const struct sy_netem_device *device, struct ifreq *request,
			 struct sy_error *err)
{
	const char *what = NULL;

	if (ioctl(fd, SIOCGIFHWADDR, request) == 0 &&
	    request->ifr_hwaddr.sa_family == ARPHRD_INFINIBAND)
		what = "InfiniBand";
	else if (has_driver(fd, request, "cxi_core") || has_driver(fd, request, "cxi"))
		what = "Slingshot";
	return what ? sy_fail(err,
			      "%s has %s: its traffic goes past the kernel's queues, so that no "
			      "condition can be put on it",
			      device->name, what)
		    : 0;
}

static int read_device(const char *name, struct sy_netem_device *device, struct sy_error *err)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct ifreq request = {0};

	if (strlen(name) >= sizeof(device->name))
		return sy_fail(err, "the name of device %.40s is too long", name);
	strcpy(device->name, name);
	strcpy(request.ifr_name, name);
	device->index = (int)if_nametoindex(name);
	if (!device->index)
		return sy_fail(err, "there is no network device %s on this node", name);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &request) < 0)
		return sy_fail_errno(err, errno, "cannot read the MTU of %s", name);
	device->mtu = request.ifr_mtu > 0 ? request.ifr_mtu : 1500;
	device->speed_bit_per_s = read_speed(fd, &request);
	device->rdma = root >= 0 && sy_has_rdma(root, name, device->index);
	return refuse_bypass(fd, device, &request, err);
}

/* The device on the way to a host, or to the one of this number in a network: its index, or -1. */
static int find_device_to_host(struct sy_network host, uint8_t number, struct sy_error *err)
{
	int last = host.family == AF_INET ? 3 : 15;
	char text[SY_UNIT_SIZE];
	struct sy_error reason = {{0}};
	int index;

	if (host.prefix < 8 * (last + 1))
		host.address[last] |= number;
	host.prefix = 8 * (last + 1);
	index = sy_route_find_device(&host, &reason);
	return index > 0 ? index
			 : sy_fail(err, "which device leads to %s? %s; dev=NAME names it",
				   sy_format_network(&host, text), reason.text);
}

static bool is_loopback(int index)
{
	return index == (int)if_nametoindex("lo");
}

struct only {
	int index;
	bool several;
};

static bool note_only_device(void *context, const struct sy_route *route)
{
	struct only *only = context;

	if (!route->index || is_loopback(route->index) || !route->carries)
		return true;
	only->several |= only->index && only->index != route->index;
	only->index = route->index;
	return true;
}

/* The device of all routes into a network, when it is the same; -1. */
static int find_only_device(const struct sy_network *network)
{
	struct only only = {0};

	(void)sy_routes_find_within(network, note_only_device, &only);
	return only.index && !only.several ? only.index : -1;
}

/* A network's own address may be taken for a broadcast, and its first one may be our own. To a wide
 * one there may be no route, but to a part of it. */
static int find_device_towards(const struct sy_network *network, struct sy_error *err)
{
	int index = find_device_to_host(*network, 1, err);

	if (index < 0)
		return find_only_device(network);
	return is_loopback(index) ? find_device_to_host(*network, 2, err) : index;
}

static bool note_default_device(void *context, const struct sy_route *route)
{
	int *index = context;

	if (route->to.prefix)
		return true;
	*index = route->index; /* the kernel lists the preferred one first */
	return false;
}

/* A cluster's own network often leads nowhere else. */
static int find_default_device(struct sy_error *err)
{
	static const struct sy_network four = {.family = AF_INET}, six = {.family = AF_INET6};
	int index = 0;

	(void)sy_routes_find_within(&four, note_default_device, &index);
	if (!index)
		(void)sy_routes_find_within(&six, note_default_device, &index);
	if (!index)
		index = find_only_device(&four);
	return index > 0
		   ? index
		   : sy_fail(err, "this node has no default route: name the device with dev=NAME, "
				  "or whom to reach with to=ADDRESS");
}

static int add_device(int index, struct sy_netem_device *devices, int count, struct sy_error *err)
{
	char name[IF_NAMESIZE];

	if (index < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (devices[i].index == index)
			return count;
	if (is_loopback(index))
		return sy_fail(err, "the way there is the loopback device: it is shaped only when "
				    "it is named, dev=lo");
	if (!if_indextoname((unsigned)index, name))
		return sy_fail_errno(err, errno, "the device of the route there is gone");
	return read_device(name, &devices[count], err) < 0 ? -1 : count + 1;
}

int sy_netem_find_devices(const struct sy_netem *spec, struct sy_netem_device *devices, int size,
			  struct sy_error *err)
{
	int count = 0;

	if (spec->device[0])
		return read_device(spec->device, devices, err) < 0 ? -1 : 1;
	if (!spec->to_count)
		return add_device(find_default_device(err), devices, 0, err);
	for (int i = 0; i < spec->to_count && count >= 0 && count < size; i++)
		count = add_device(find_device_towards(&spec->to[i], err), devices, count, err);
	return count;
}

struct noting {
	json_t *document;
	const struct sy_network *network;
	const struct sy_netem_device *devices;
	int count;
};

static bool note_other_route(void *context, const struct sy_route *route)
{
	const struct noting *noting = context;
	char requested[SY_UNIT_SIZE], where[SY_UNIT_SIZE], name[IF_NAMESIZE];
	bool shaped = is_loopback(route->index);

	for (int i = 0; i < noting->count; i++)
		shaped |= noting->devices[i].index == route->index;
	if (shaped || !route->carries || !if_indextoname((unsigned)route->index, name))
		return true;
	sy_json_note(noting->document,
		     "to=%s: what goes to %s leaves by %s and was not shaped; a to= of its own "
		     "shapes it",
		     sy_format_network(noting->network, requested),
		     route->to.prefix ? sy_format_network(&route->to, where) : "default", name);
	return true;
}

void sy_netem_note_other_routes(json_t *document, const struct sy_netem *spec,
				const struct sy_netem_device *devices, int count)
{
	for (int i = 0; i < spec->to_count && !spec->device[0]; i++) {
		struct noting noting = {document, &spec->to[i], devices, count};

		if (spec->to[i].prefix < (spec->to[i].family == AF_INET ? 32 : 128))
			(void)sy_routes_find_within(&spec->to[i], note_other_route, &noting);
	}
}

bool sy_netem_is_routed_over(const char *address, const char *device)
{
	struct sy_network host;
	int index = -1;

	if (sy_parse_network(address, &host, NULL) == 0)
		index = find_device_to_host(host, 0, NULL);
	return index < 0 || index == (int)if_nametoindex(device);
}

static int64_t read_third_number(const char *path)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long long number = 0;
	char text[128];

	if (root < 0 || sy_read_line_at(root, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "%*s %*s %lld", &number) != 1)
		return 0;
	return number;
}

int64_t sy_tcp_window_read(void)
{
	int64_t receive = read_third_number("/proc/sys/net/ipv4/tcp_rmem");
	int64_t send = read_third_number("/proc/sys/net/ipv4/tcp_wmem");

	return receive > send ? receive : send;
}

int sy_ifb_create(const char *name, struct sy_error *err)
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
	result = sy_rtnl_request(request, NULL, NULL);
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
	result = sy_rtnl_request(request, NULL, NULL);
	return result && result != -ENODEV
		   ? sy_fail_errno(err, -result, "cannot remove our device %s", name)
		   : 0;
}
