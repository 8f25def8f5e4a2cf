/* RAPL through the powercap class: the zones under /sys/class/powercap.
 *
 * Zones overlap: psys holds the packages, a package holds its core and uncore; dram is beside
 * them; intel-rapl-mmio shows zones of intel-rapl a second time. The MSR's come first among those
 * of one name: whoever takes the first of each takes nothing twice.
 * Source: Documentation/power/powercap/powercap.rst of the kernel. */
#include "meters/readers.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POWERCAP "/sys/class/powercap"

/* The coarsest unit that processors count in, 2^-14 J (Intel SDM volume 3, 15.10.1). */
#define RESOLUTION_UJ 61

static const char *folder_name(const struct sy_meter *zone)
{
	return strrchr(zone->path, '/') + 1;
}

bool sy_powercap_is_mmio(const struct sy_meter *meter)
{
	return meter->reader == &sy_powercap && strstr(meter->path, "-mmio:");
}

/* A zone's folder is CONTROL_TYPE:NUMBER[:NUMBER…]; its parent's is the same less one number. */
static int find_parent(const struct sy_meter_list *found, int first, const struct sy_meter *zone)
{
	const char *name = folder_name(zone);
	size_t length = (size_t)(strrchr(name, ':') - name);

	for (int i = first; i < found->count; i++)
		if (strlen(folder_name(&found->meter[i])) == length &&
		    !strncmp(folder_name(&found->meter[i]), name, length))
			return i;
	return -1;
}

static void read_range(int root, struct sy_meter *zone)
{
	char path[256];
	int64_t range;

	(void)snprintf(path, sizeof(path), "%s/max_energy_range_uj", zone->path);
	if (sy_read_int_at(root, path, &range) == 0 && range > 0)
		zone->range_uj = range;
}

/* Only a reading shows access: in a container the mode may allow what the mount forbids. */
static int read_energy(int root, struct sy_meter *zone)
{
	char path[256];
	int64_t energy;
	int result;

	(void)snprintf(path, sizeof(path), "%s/energy_uj", zone->path);
	result = sy_read_int_at(root, path, &energy);
	zone->readable = result == 0 && energy >= 0;
	if (result == -EINVAL || (result == 0 && energy < 0))
		(void)snprintf(zone->reason, sizeof(zone->reason),
			       "energy_uj holds no number of µJ");
	else if (result == -EACCES)
		(void)snprintf(zone->reason, sizeof(zone->reason),
			       "energy_uj is readable by root only (since Linux 5.10)");
	else if (result < 0)
		(void)snprintf(zone->reason, sizeof(zone->reason), "energy_uj: %s",
			       strerror(-result));
	return result;
}

static void set_domain(int root, struct sy_meter *zone)
{
	char number[16];
	static const struct {
		const char *name;
		enum sy_domain domain;
	} words[] = {{"psys", SY_DOMAIN_PSYS},
		     {"core", SY_DOMAIN_CORE},
		     {"uncore", SY_DOMAIN_UNCORE},
		     {"dram", SY_DOMAIN_DRAM}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(zone->name, words[i].name))
			zone->domain = words[i].domain;
	if (strncmp(zone->name, "package", 7) != 0)
		return;
	zone->domain = SY_DOMAIN_PACKAGE;
	if (zone->name[7] != '-')
		return;
	(void)snprintf(number, sizeof(number), "%.*s", (int)strcspn(zone->name + 8, "-"),
		       zone->name + 8);
	zone->unit = sy_parse_meter_unit(number);
	zone->per_package = strstr(zone->name, "-die-") && sy_dies_share_a_counter(root);
}

/* Fill in one zone: false when the folder is none. */
static bool read_zone(int root, const char *folder, struct sy_meter *zone)
{
	char path[256];
	int energy, name;

	zone->resolution = RESOLUTION_UJ;
	if ((size_t)snprintf(zone->path, sizeof(zone->path), "%s", folder) >= sizeof(zone->path))
		return false;
	(void)snprintf(path, sizeof(path), "%s/name", zone->path);
	name = (int)sy_read_line_at(root, path, zone->name, sizeof(zone->name));
	energy = read_energy(root, zone);
	read_range(root, zone);
	set_domain(root, zone);
	return name >= 0 || energy != -ENOENT;
}

/* Sysfs lists inner zones both next to and inside the outer ones; a plain copy has them inside. */
static bool is_listed(const struct sy_meter_list *found, int first, const char *name)
{
	for (int i = first; i < found->count; i++)
		if (!strcmp(folder_name(&found->meter[i]), name))
			return true;
	return false;
}

static void find_in_folder(int root, struct sy_meter_list *found, int first, const char *folder,
			   int depth)
{
	cleanup_names struct sy_names names = {0};

	if (depth > 3 || sy_list_at(root, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		struct sy_meter *zone;
		char path[512];

		if (!strchr(names.name[i], ':') || is_listed(found, first, names.name[i]))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names.name[i]);
		zone = sy_meter_list_add(found, &sy_powercap);
		if (zone && read_zone(root, path, zone))
			find_in_folder(root, found, first, path, depth + 1);
		else if (zone)
			found->count--;
	}
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};
	int result = sy_list_at(root, POWERCAP, &names), first = found->count;

	if (result < 0) {
		(void)sy_fail(err, "no RAPL: " POWERCAP " is %s",
			      result == -ENOENT ? "absent" : strerror(-result));
		return;
	}
	find_in_folder(root, found, first, POWERCAP, 0);
	if (found->count == first)
		(void)sy_fail(err, "no RAPL: " POWERCAP " holds no zone");
	for (int i = first; i < found->count; i++) {
		struct sy_meter *zone = &found->meter[i];

		zone->parent = find_parent(found, first, zone);
		if (zone->parent >= 0 && zone->unit < 0)
			zone->unit = found->meter[zone->parent].unit;
	}
}

static int open_zone(int root, struct sy_meter *meter, struct sy_error *err)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/energy_uj", meter->path);
	return sy_meter_open_file(root, path, meter, err);
}

static int64_t read_uj(struct sy_meter *meter, const char **reason)
{
	(void)reason;
	return sy_meter_read_file(meter, 1);
}

const struct sy_reader sy_powercap = {
    .name = "powercap", .who = "root", .find = find, .open = open_zone, .read = read_uj};
