#include "counters/rapl.h"

#include "base/shortage.h"
#include "base/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POWERCAP "/sys/class/powercap"

static const char *folder_name(const struct sy_rapl_zone *zone)
{
	return strrchr(zone->path, '/') + 1;
}

/* A zone's folder is CONTROL_TYPE:NUMBER[:NUMBER…]; its parent's is the same less one number. */
static int find_parent(const struct sy_rapl_zone *zones, int count, const struct sy_rapl_zone *zone)
{
	const char *name = folder_name(zone);
	size_t length = (size_t)(strrchr(name, ':') - name);

	for (int i = 0; i < count; i++)
		if (strlen(folder_name(&zones[i])) == length &&
		    !strncmp(folder_name(&zones[i]), name, length))
			return i;
	return -1;
}

static void read_range(int root, struct sy_rapl_zone *zone)
{
	char path[256];
	int64_t range;

	(void)snprintf(path, sizeof(path), "%s/max_energy_range_uj", zone->path);
	if (sy_read_int_at(root, path, &range) == 0 && range > 0)
		zone->max_energy_range_uj = (uint64_t)range;
}

/* Only reading tells: in a container the mode may allow what the mount forbids. */
static int read_energy(int root, struct sy_rapl_zone *zone)
{
	char path[256];
	int64_t energy;
	int result;

	(void)snprintf(path, sizeof(path), "%s/energy_uj", zone->path);
	result = sy_read_int_at(root, path, &energy);
	zone->readable = result == 0 && energy >= 0;
	if (result == -EINVAL || (result == 0 && energy < 0))
		(void)snprintf(zone->why, sizeof(zone->why), "energy_uj holds no number of µJ");
	else if (result == -EACCES)
		(void)snprintf(zone->why, sizeof(zone->why),
			       "energy_uj is readable by root only (since Linux 5.10)");
	else if (result < 0)
		(void)snprintf(zone->why, sizeof(zone->why), "energy_uj: %s", strerror(-result));
	return result;
}

/* Fill in one zone: false when the folder is none. */
static bool read_zone(int root, const char *folder, struct sy_rapl_zone *zone)
{
	char path[256];
	int energy, name;

	*zone = (struct sy_rapl_zone){.parent = -1};
	if ((size_t)snprintf(zone->path, sizeof(zone->path), "%s", folder) >= sizeof(zone->path))
		return false;
	(void)snprintf(path, sizeof(path), "%s/name", zone->path);
	name = (int)sy_read_line_at(root, path, zone->name, sizeof(zone->name));
	energy = read_energy(root, zone);
	read_range(root, zone);
	return name >= 0 || energy != -ENOENT;
}

static bool summed_name(const char *name)
{
	return !strncmp(name, "package", 7) || !strcmp(name, "dram");
}

static bool same_thing(const struct sy_rapl_zone *zones, const struct sy_rapl_zone *a,
		       const struct sy_rapl_zone *b)
{
	const char *parent_a = a->parent < 0 ? "" : zones[a->parent].name;
	const char *parent_b = b->parent < 0 ? "" : zones[b->parent].name;

	return !strcmp(a->name, b->name) && !strcmp(parent_a, parent_b);
}

static bool is_mmio(const struct sy_rapl_zone *zone)
{
	return strstr(zone->path, "-mmio:") != NULL;
}

/* Packages and dram, each once: a zone seen through MSR and MMIO counts by its MSR. */
static void mark_counted(struct sy_rapl_zone *zones, int count)
{
	for (int i = 0; i < count; i++) {
		zones[i].counted = summed_name(zones[i].name);
		for (int j = 0; j < count && zones[i].counted; j++)
			if (j != i && same_thing(zones, &zones[i], &zones[j]) &&
			    (is_mmio(&zones[j]) == is_mmio(&zones[i]) ? j < i : is_mmio(&zones[i])))
				zones[i].counted = false;
	}
}

struct search {
	int root;
	struct sy_rapl_zone *zones;
	size_t capacity;
	int count;
	bool full;
};

/* Sysfs lists inner zones both beside and inside the outer ones; a plain copy has them inside. */
static bool is_known(const struct search *search, const char *name)
{
	for (int i = 0; i < search->count; i++)
		if (!strcmp(folder_name(&search->zones[i]), name))
			return true;
	return false;
}

static void look_into(struct search *search, const char *folder, int depth)
{
	cleanup_names struct sy_names names = {0};

	if (depth > 3 || sy_list_at(search->root, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		char path[512];
		struct sy_rapl_zone zone;

		(void)snprintf(path, sizeof(path), "%s/%s", folder, names.name[i]);
		if (!strchr(names.name[i], ':') || is_known(search, names.name[i]) ||
		    !read_zone(search->root, path, &zone))
			continue;
		if ((size_t)search->count == search->capacity) {
			search->full = true;
			return;
		}
		search->zones[search->count++] = zone;
		look_into(search, path, depth + 1);
	}
}

int sy_rapl_find(int root, struct sy_rapl_zone *zones, size_t capacity, struct sy_error *err)
{
	struct search search = {.root = root, .zones = zones, .capacity = capacity};
	cleanup_names struct sy_names names = {0};
	unsigned shortages = sy_shortages();
	int result = sy_list_at(root, POWERCAP, &names);

	if (result < 0) {
		(void)sy_fail(err, "no RAPL: " POWERCAP " is %s",
			      result == -ENOENT ? "absent" : strerror(-result));
		return 0;
	}
	look_into(&search, POWERCAP, 0);
	if (search.full)
		(void)sy_fail(err, "more than %zu RAPL zones: the rest is left out", capacity);
	else if (search.count == 0)
		(void)sy_fail(err, "no RAPL: " POWERCAP " holds no zone");
	for (int i = 0; i < search.count; i++)
		zones[i].parent = find_parent(zones, search.count, &zones[i]);
	if (sy_shortages() != shortages) { /* the sum would lack some */
		(void)sy_fail(err, "no RAPL: " POWERCAP
				   " cannot be read whole: no descriptor or no memory left");
		return 0;
	}
	mark_counted(zones, search.count);
	return search.count;
}
