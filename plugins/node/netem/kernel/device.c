#include "netem/kernel/device.h"

#include "base/document.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/tree.h"
#include "netem/spec/values.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define MBIT	     1000000LL
#define LEVELS_BELOW 3 /* a VLAN on a bond on a card */

static int64_t speed_of(int fd, struct ifreq *request)
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
static bool rdma_below(int root, const char *folder, int levels)
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
		found = rdma_below(root, path, levels - 1);
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
	return rdma_below(root, path, LEVELS_BELOW);
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

static int look_up(const char *name, struct sy_netem_device *device, struct sy_error *err)
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
	device->speed_bit_per_s = speed_of(fd, &request);
	device->rdma = root >= 0 && sy_has_rdma(root, name, device->index);
	return refuse_bypass(fd, device, &request, err);
}

/* The name of the device in what `ip -j route` says; free it. */
static char *route_device(const char *const *argv, struct sy_error *err)
{
	cleanup_free char *text = sy_run_text(argv, NULL, err);
	const char *name = NULL;
	char *copy = NULL;
	json_t *routes;

	if (!text)
		return NULL;
	routes = json_loads(text, 0, NULL);
	name = json_string_value(json_object_get(json_array_get(routes, 0), "dev"));
	if (name)
		copy = strdup(name);
	else
		(void)sy_fail(err, "this node has no route there");
	json_decref(routes);
	return copy;
}

static char *device_to_host(struct sy_network host, uint8_t number, struct sy_error *err)
{
	int last = host.family == AF_INET ? 3 : 15;
	char text[SY_UNIT_SIZE];
	const char *argv[] = {"ip", "-j", "route", "get", text, NULL};
	struct sy_error why = {{0}};
	char *name;

	if (host.prefix < 8 * (last + 1))
		host.address[last] |= number;
	host.prefix = 8 * (last + 1);
	(void)sy_format_network(&host, text);
	name = route_device(argv, &why);
	if (!name)
		(void)sy_fail(err, "which device leads to %s? %s; dev=NAME names it", text,
			      why.text);
	return name;
}

static bool carries(json_t *route)
{
	json_t *flags = json_object_get(route, "flags");

	for (size_t i = 0; i < json_array_size(flags); i++) {
		const char *flag = json_string_value(json_array_get(flags, i));

		if (flag && !strcmp(flag, "linkdown"))
			return false;
	}
	return true;
}

/* All routes to networks inside of this one; NULL when they cannot be read. */
static json_t *routes_within(const char *family, const char *within)
{
	const char *argv[] = {"ip", "-j", family, "route", "show", "root", within, NULL};
	cleanup_free char *text = sy_run_text(argv, NULL, NULL);

	return text ? json_loads(text, 0, NULL) : NULL;
}

/* The device of these routes, when it is the same; free it. */
static char *only_device(const char *family, const char *within)
{
	json_t *routes = routes_within(family, within);
	const char *only = NULL;
	bool several = false;
	char *copy;

	for (size_t i = 0; i < json_array_size(routes); i++) {
		json_t *route = json_array_get(routes, i);
		const char *name = json_string_value(json_object_get(route, "dev"));

		if (!name || !strcmp(name, "lo") || !carries(route))
			continue;
		several |= only && strcmp(only, name);
		only = name;
	}
	copy = only && !several ? strdup(only) : NULL;
	json_decref(routes);
	return copy;
}

/* A network's own address may be taken for a broadcast, and its first one may be our own. To a wide
 * one there may be no route, but to a part of it. */
static char *device_towards(const struct sy_network *network, struct sy_error *err)
{
	char *name = device_to_host(*network, 1, err);
	char text[SY_UNIT_SIZE];

	if (!name) {
		(void)sy_format_network(network, text);
		return only_device(network->family == AF_INET ? "-4" : "-6", text);
	}
	if (strcmp(name, "lo"))
		return name;
	free(name);
	return device_to_host(*network, 2, err);
}

/* A cluster's own network often leads nowhere else. */
static char *default_device(struct sy_error *err)
{
	static const char *const four[] = {"ip", "-j", "route", "show", "default", NULL};
	static const char *const six[] = {"ip", "-j", "-6", "route", "show", "default", NULL};
	char *name = route_device(four, NULL);

	if (!name)
		name = route_device(six, NULL);
	if (!name)
		name = only_device("-4", "0.0.0.0/0");
	if (!name)
		(void)sy_fail(err, "this node has no default route: name the device with dev=NAME, "
				   "or whom to reach with to=ADDRESS");
	return name;
}

static int add(char *name, struct sy_netem_device *devices, int count, struct sy_error *err)
{
	cleanup_free char *mine = name;

	if (!mine)
		return -1;
	for (int i = 0; i < count; i++)
		if (!strcmp(devices[i].name, mine))
			return count;
	if (!strcmp(mine, "lo"))
		return sy_fail(err, "the way there is the loopback device: it is shaped only when "
				    "it is named, dev=lo");
	return look_up(mine, &devices[count], err) < 0 ? -1 : count + 1;
}

int sy_netem_devices(const struct sy_netem *spec, struct sy_netem_device *devices, int size,
		     struct sy_error *err)
{
	int count = 0;

	if (spec->device[0])
		return look_up(spec->device, devices, err) < 0 ? -1 : 1;
	if (!spec->to_count)
		return add(default_device(err), devices, 0, err);
	for (int i = 0; i < spec->to_count && count >= 0 && count < size; i++)
		count = add(device_towards(&spec->to[i], err), devices, count, err);
	return count;
}

static bool is_shaped(const struct sy_netem_device *devices, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(devices[i].name, name))
			return true;
	return !strcmp(name, "lo");
}

static void note_others(json_t *document, const struct sy_network *network,
			const struct sy_netem_device *devices, int count)
{
	const char *family = network->family == AF_INET ? "-4" : "-6";
	char text[SY_UNIT_SIZE];
	json_t *routes = routes_within(family, sy_format_network(network, text));

	for (size_t i = 0; i < json_array_size(routes); i++) {
		json_t *route = json_array_get(routes, i);
		const char *name = json_string_value(json_object_get(route, "dev"));
		const char *where = json_string_value(json_object_get(route, "dst"));

		if (name && where && carries(route) && !is_shaped(devices, count, name))
			sy_json_note(document,
				     "to=%s: what goes to %s leaves by %s and was not shaped; a "
				     "to= of its own shapes it",
				     text, where, name);
	}
	json_decref(routes);
}

void sy_netem_note_others(json_t *document, const struct sy_netem *spec,
			  const struct sy_netem_device *devices, int count)
{
	for (int i = 0; i < spec->to_count && !spec->device[0]; i++)
		if (spec->to[i].prefix < (spec->to[i].family == AF_INET ? 32 : 128))
			note_others(document, &spec->to[i], devices, count);
}

bool sy_netem_leads_over(const char *address, const char *device)
{
	cleanup_free char *name = NULL;
	struct sy_network host;

	if (sy_parse_network(address, &host, NULL) == 0)
		name = device_to_host(host, 0, NULL);
	return !name || !strcmp(name, device);
}

static int64_t third_number(const char *path)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long long number = 0;
	char text[128];

	if (root < 0 || sy_read_line_at(root, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "%*s %*s %lld", &number) != 1)
		return 0;
	return number;
}

int64_t sy_tcp_window_bytes(void)
{
	int64_t receive = third_number("/proc/sys/net/ipv4/tcp_rmem");
	int64_t send = third_number("/proc/sys/net/ipv4/tcp_wmem");

	return receive > send ? receive : send;
}
