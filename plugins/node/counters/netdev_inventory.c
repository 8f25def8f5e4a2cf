#include "counters/netdev_inventory.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NET "/sys/class/net"

static const char *const kind_names[SY_NETDEV_KINDS] = {
    [SY_NETDEV_UNKNOWN] = "unknown",
    [SY_NETDEV_LOOPBACK] = "loopback",
    [SY_NETDEV_PHYSICAL] = "physical",
    [SY_NETDEV_VIRTIO] = "virtio",
    [SY_NETDEV_SRIOV_VF] = "sriov-vf",
    [SY_NETDEV_INFINIBAND] = "infiniband",
    [SY_NETDEV_PARAVIRTUAL] = "paravirtual",
    [SY_NETDEV_UML] = "uml",
    [SY_NETDEV_BOND] = "bond",
    [SY_NETDEV_BRIDGE] = "bridge",
    [SY_NETDEV_VETH] = "veth",
    [SY_NETDEV_MACVLAN] = "macvlan",
    [SY_NETDEV_IPVLAN] = "ipvlan",
    [SY_NETDEV_TUN] = "tun",
    [SY_NETDEV_VLAN] = "vlan",
    [SY_NETDEV_DUMMY] = "dummy",
};

const char *sy_netdev_kind_name(enum sy_netdev_kind kind)
{
	return kind < SY_NETDEV_KINDS ? kind_names[kind] : "unknown";
}

struct word_kind {
	const char *word;
	enum sy_netdev_kind kind;
};

/* Drivers of devices on a bus; the rest is physical. */
static const struct word_kind drivers[] = {
    {"virtio_net", SY_NETDEV_VIRTIO},	  {"vmxnet3", SY_NETDEV_PARAVIRTUAL},
    {"vif", SY_NETDEV_PARAVIRTUAL},	  {"xen-netfront", SY_NETDEV_PARAVIRTUAL},
    {"hv_netvsc", SY_NETDEV_PARAVIRTUAL}, {"ena", SY_NETDEV_PARAVIRTUAL},
    {"gve", SY_NETDEV_PARAVIRTUAL},	  {"ibmveth", SY_NETDEV_PARAVIRTUAL},
    {"ixgbevf", SY_NETDEV_SRIOV_VF},	  {"igbvf", SY_NETDEV_SRIOV_VF},
    {"iavf", SY_NETDEV_SRIOV_VF},	  {"i40evf", SY_NETDEV_SRIOV_VF},
    {"mana", SY_NETDEV_SRIOV_VF},	  {"thunder-nicvf", SY_NETDEV_SRIOV_VF},
    {"uml-vector", SY_NETDEV_UML},	  {"uml-netdev", SY_NETDEV_UML},
};

/* What ethtool or iproute2 (`ip -d link`) call devices without a bus, and DEVTYPE of uevent. */
static const struct word_kind software[] = {
    {"veth", SY_NETDEV_VETH},	    {"bridge", SY_NETDEV_BRIDGE},
    {"macvlan", SY_NETDEV_MACVLAN}, {"macvtap", SY_NETDEV_MACVLAN},
    {"ipvlan", SY_NETDEV_IPVLAN},   {"ipvtap", SY_NETDEV_IPVLAN},
    {"tun", SY_NETDEV_TUN},	    {"bonding", SY_NETDEV_BOND},
    {"bond", SY_NETDEV_BOND},	    {"vlan", SY_NETDEV_VLAN},
    {"dummy", SY_NETDEV_DUMMY},	    {"802.1Q VLAN Support", SY_NETDEV_VLAN},
};

static enum sy_netdev_kind look_up(const struct word_kind *table, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].word, word))
			return table[i].kind;
	return SY_NETDEV_UNKNOWN;
}

#define LOOK_UP(table, word) look_up(table, sizeof(table) / sizeof((table)[0]), word)

static const char *device_path(char *buffer, size_t size, const char *device, const char *file)
{
	(void)snprintf(buffer, size, NET "/%s/%s", device, file);
	return buffer;
}

static bool has_file(int root, const char *device, const char *file)
{
	char path[128];

	return sy_exists_at(root, device_path(path, sizeof(path), device, file));
}

static int64_t read_number(int root, const char *device, const char *file)
{
	char path[128];
	int64_t value;

	if (sy_read_int_at(root, device_path(path, sizeof(path), device, file), &value) < 0)
		return -1;
	return value;
}

static void read_text(int root, const char *device, const char *file, char *buffer, size_t size)
{
	char path[128];

	(void)sy_read_line_at(root, device_path(path, sizeof(path), device, file), buffer, size);
}

/* A function of an SR-IOV device: on the host physfn shows it; in a guest only the device's id
 * does, where the driver is the same (mlx4, mlx5: pci.ids of vendor 15b3). */
static bool is_virtual_function(int root, const char *device)
{
	static const int64_t ids[] = {0x1002, 0x1004, 0x1014, 0x1016,
				      0x1018, 0x101a, 0x101c, 0x101e};
	int64_t id = read_number(root, device, "device/device");

	if (has_file(root, device, "device/physfn"))
		return true;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (id == ids[i])
			return read_number(root, device, "device/vendor") == 0x15b3;
	return false;
}

/* The host's end of a Xen guest's device; the frontend's driver has the same name. */
static bool is_xen_backend(int root, const struct sy_netdev *device)
{
	char path[128], bus[32];

	return sy_link_name_at(root,
			       device_path(path, sizeof(path), device->name, "device/subsystem"),
			       bus, sizeof(bus)) > 0 &&
	       !strcmp(bus, "xen-backend");
}

/* A device on a bus: by its driver, and by what it is a function of. */
static enum sy_netdev_kind bus_kind(int root, const struct sy_netdev *device)
{
	enum sy_netdev_kind kind = LOOK_UP(drivers, device->driver);

	if (is_xen_backend(root, device))
		return SY_NETDEV_UNKNOWN;
	if (kind != SY_NETDEV_UNKNOWN)
		return kind;
	if (read_number(root, device->name, "type") == ARPHRD_INFINIBAND)
		return SY_NETDEV_INFINIBAND;
	return is_virtual_function(root, device->name) ? SY_NETDEV_SRIOV_VF : SY_NETDEV_PHYSICAL;
}

static enum sy_netdev_kind devtype_kind(int root, const char *device)
{
	char uevent[256], path[128];
	char *type;

	if (sy_read_at(root, device_path(path, sizeof(path), device, "uevent"), uevent,
		       sizeof(uevent)) < 0)
		return SY_NETDEV_UNKNOWN;
	type = strstr(uevent, "DEVTYPE=");
	if (!type)
		return SY_NETDEV_UNKNOWN;
	type += strlen("DEVTYPE=");
	type[strcspn(type, "\n")] = '\0';
	return LOOK_UP(software, type);
}

/* The driver's own name of the kind: in a container sysfs does not distinguish veth from
 * macvlan. */
static enum sy_netdev_kind query_driver(const char *device)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (char *)&info};

	if (fd < 0) {
		(void)sy_count_shortage(errno);
		return SY_NETDEV_UNKNOWN;
	}
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	if (ioctl(fd, SIOCETHTOOL, &request) < 0)
		return SY_NETDEV_UNKNOWN;
	info.driver[sizeof(info.driver) - 1] = '\0';
	return LOOK_UP(software, info.driver);
}

/* The same of a recorded tree. */
static enum sy_netdev_kind recorded_kind(int root, const char *device)
{
	char lines[4096], name[IFNAMSIZ], kind[32];
	char *rest = lines, *line;

	if (sy_read_at(root, "/.steelyard/netdev-kinds", lines, sizeof(lines)) < 0)
		return SY_NETDEV_UNKNOWN;
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%15s %31s", name, kind) == 2 && !strcmp(name, device))
			return LOOK_UP(software, kind);
	return SY_NETDEV_UNKNOWN;
}

static bool has_lower(int root, const char *device)
{
	cleanup_names struct sy_names names = {0};
	char path[128];

	(void)sy_list_at(root, device_path(path, sizeof(path), device, ""), &names);
	for (size_t i = 0; i < names.count; i++)
		if (!strncmp(names.name[i], "lower_", 6))
			return true;
	return false;
}

/* By the links in sysfs alone: a peer or a lower device elsewhere. */
static enum sy_netdev_kind linked_kind(int root, const struct sy_netdev *device)
{
	int64_t link = read_number(root, device->name, "iflink");

	if (read_number(root, device->name, "type") != ARPHRD_ETHER || link <= 0 ||
	    link == device->index)
		return SY_NETDEV_UNKNOWN;
	return has_lower(root, device->name) ? SY_NETDEV_MACVLAN : SY_NETDEV_VETH;
}

static enum sy_netdev_kind software_kind(int root, bool machine, const struct sy_netdev *device)
{
	const char *name = device->name;
	enum sy_netdev_kind kind;

	if (has_file(root, name, "bridge"))
		return SY_NETDEV_BRIDGE;
	if (has_file(root, name, "bonding"))
		return SY_NETDEV_BOND;
	if (has_file(root, name, "tun_flags"))
		return SY_NETDEV_TUN;
	if (read_number(root, name, "type") == ARPHRD_INFINIBAND)
		return SY_NETDEV_INFINIBAND;
	kind = devtype_kind(root, name);
	if (kind == SY_NETDEV_UNKNOWN)
		kind = machine ? query_driver(name) : recorded_kind(root, name);
	return kind == SY_NETDEV_UNKNOWN ? linked_kind(root, device) : kind;
}

static enum sy_netdev_kind find_kind(int root, bool machine, const struct sy_netdev *device)
{
	if (read_number(root, device->name, "type") == ARPHRD_LOOPBACK)
		return SY_NETDEV_LOOPBACK;
	if (has_file(root, device->name, "device"))
		return bus_kind(root, device);
	return software_kind(root, machine, device);
}

static void read_device(int root, bool machine, const char *name, struct sy_netdev *device)
{
	char path[128];
	int64_t speed_mbit;

	*device = (struct sy_netdev){.kind = SY_NETDEV_UNKNOWN};
	(void)snprintf(device->name, sizeof(device->name), "%s", name);
	(void)sy_link_name_at(root, device_path(path, sizeof(path), name, "device/driver"),
			      device->driver, sizeof(device->driver));
	read_text(root, name, "address", device->mac, sizeof(device->mac));
	read_text(root, name, "operstate", device->state, sizeof(device->state));
	device->mtu = read_number(root, name, "mtu");
	device->index = read_number(root, name, "ifindex");
	/* "-1" or an error where the driver does not know; 4294967295 in old kernels. */
	speed_mbit = read_number(root, name, "speed");
	device->speed_bits_per_s =
	    speed_mbit > 0 && speed_mbit < 4294967295 ? speed_mbit * 1000000 : -1;
	(void)sy_link_name_at(root, device_path(path, sizeof(path), name, "master"), device->master,
			      sizeof(device->master));
	device->stacked = has_lower(root, name);
	device->kind = find_kind(root, machine, device);
}

static bool is_uplink(const struct sy_netdev *device)
{
	return device->kind >= SY_NETDEV_PHYSICAL && device->kind <= SY_NETDEV_BOND;
}

static bool is_inner_uplink(const struct sy_netdev *device)
{
	return device->kind >= SY_NETDEV_VETH && device->kind <= SY_NETDEV_TUN &&
	       !*device->master && !device->stacked;
}

/* The master of bonds, of hv_netvsc and of net_failover counts its slaves' bytes as its own. */
static bool counted_by_master(const struct sy_netdev *devices, int count, const char *master)
{
	for (int i = 0; i < count && *master; i++)
		if (!strcmp(devices[i].name, master))
			return is_uplink(&devices[i]);
	return false;
}

static void mark_counted(struct sy_netdev *devices, int count)
{
	bool found = false;

	for (int i = 0; i < count; i++) {
		devices[i].counted =
		    is_uplink(&devices[i]) && !counted_by_master(devices, count, devices[i].master);
		found |= devices[i].counted;
	}
	for (int i = 0; i < count && !found; i++)
		devices[i].counted = is_inner_uplink(&devices[i]);
}

int sy_netdev_find(int root, struct sy_netdev *devices, size_t capacity, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};
	unsigned shortages = sy_get_shortages();
	int result = sy_list_at(root, NET, &names);
	bool machine = sy_root_is_machine(root);
	int count = 0;

	if (result < 0) {
		(void)sy_fail(err, "no network devices: " NET " is %s",
			      result == -ENOENT ? "absent" : strerror(-result));
		return 0;
	}
	for (size_t i = 0; i < names.count; i++) {
		/* bonding_masters is a file among the devices. */
		if (strlen(names.name[i]) >= IFNAMSIZ || !has_file(root, names.name[i], "."))
			continue;
		if ((size_t)count == capacity) {
			(void)sy_fail(err, "more than %zu network devices: the rest is left out",
				      capacity);
			break;
		}
		read_device(root, machine, names.name[i], &devices[count++]);
	}
	if (count == 0)
		(void)sy_fail(err, "no network devices: " NET " is empty");
	if (sy_get_shortages() != shortages) { /* the sum would lack some */
		(void)sy_fail(err, "no network devices: " NET
				   " cannot be read whole: no descriptor or no memory left");
		return 0;
	}
	mark_counted(devices, count);
	return count;
}
