/* AMD's GPUs: the joules that the firmware has counted, out of the table `gpu_metrics` that the
 * driver amdgpu writes below /sys/class/drm; the value of ROCm's rsmi_dev_energy_count_get, without
 * its library.
 *
 * Slow: each reading asks the firmware. Units of 2^-16 J. A GPU that does not count (RDNA4: always
 * 0) is read by its watts.
 * Sources: drivers/gpu/drm/amd/include/kgd_pp_interface.h of the kernel and of ROCm/amdgpu
 * (gpu_metrics_v1_1 to v1_8); ROCm SMI's reference, rsmi_dev_energy_count_get. */
#include "meters/readers.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define DRM	      "/sys/class/drm"
#define RESOLUTION_UJ 16 /* 2^-16 J */
#define RESOLUTION_UW 1000000
#define PERIOD_US     1000000

enum { HAS_COUNTED };

/* The released layouts of format 1. A revision alone does not name one: 1.6 was in the kernel in
 * another layout before its release. Revision 0 is not aligned, 1.9 is a list of attributes. */
static const struct layout {
	unsigned char revision;
	uint16_t size;
	unsigned char watts, count; /* offsets: 16 bits, 64 bits */
} layouts[] = {{1, 96, 22, 24},	  {2, 104, 22, 24}, {3, 120, 22, 24}, {4, 288, 10, 24},
	       {5, 360, 10, 88},  {6, 352, 10, 88}, {6, 384, 10, 88}, {6, 1664, 10, 16},
	       {7, 2208, 10, 24}, {8, 3360, 10, 24}};

static const struct layout *find_layout(const unsigned char *table, size_t length)
{
	size_t size = length < 4 ? 0 : (size_t)table[0] | (size_t)table[1] << 8;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (size == layouts[i].size && length >= size && table[2] == 1 &&
		    table[3] == layouts[i].revision)
			return &layouts[i];
	return NULL;
}

int64_t sy_amdgpu_energy_uj(const unsigned char *table, size_t length, const char **reason)
{
	const struct layout *layout = find_layout(table, length);
	uint64_t count = 0;

	*reason = "gpu_metrics has a layout that Steelyard does not know, or one without a counter";
	if (!layout)
		return -1;
	for (size_t i = sizeof(count); i > 0; i--)
		count = count << 8 | table[layout->count + i - 1];
	*reason = "the GPU does not count its energy";
	if (count == 0 || count > (uint64_t)INT64_MAX / 1000000)
		return -1;
	return (int64_t)((count >> 16) * 1000000 + ((count & 0xffff) * 1000000 >> 16));
}

int64_t sy_amdgpu_power_uw(const unsigned char *table, size_t length)
{
	const struct layout *layout = find_layout(table, length);
	int watts = layout ? table[layout->watts] | table[layout->watts + 1] << 8 : 0;

	return watts == 0 || watts == UINT16_MAX ? -1 : (int64_t)watts * RESOLUTION_UW;
}

/* A GPU whose first table has no count is read by its watts. */
static int64_t read_table(struct sy_meter *meter, const char **reason)
{
	unsigned char table[4096];
	ssize_t got = pread(meter->fd, table, sizeof(table), 0);
	int64_t value = -1;

	if (got < 0)
		return -1;
	if (!meter->power)
		value = sy_amdgpu_energy_uj(table, (size_t)got, reason);
	if (value < 0 && !meter->key[HAS_COUNTED]) {
		value = sy_amdgpu_power_uw(table, (size_t)got);
		meter->power |= value >= 0;
		return value;
	}
	meter->key[HAS_COUNTED] = 1;
	return value;
}

static int open_table(int root, struct sy_meter *meter, struct sy_error *err)
{
	return sy_meter_open_file(root, meter->path, meter, err);
}

/* "card12" is 12; "card0-DP-1" is an output of one, -1. */
static int card_number(const char *name)
{
	if (strncmp(name, "card", 4) != 0 || name[4 + strspn(name + 4, "0123456789")])
		return -1;
	return sy_parse_meter_unit(name + 4);
}

/* The device by which programs compute: "dri/renderD128". */
static void find_device(int root, const char *card, struct sy_meter *meter)
{
	cleanup_names struct sy_names names = {0};
	char path[128];

	(void)snprintf(path, sizeof(path), DRM "/%.32s/device/drm", card);
	if (sy_list_at(root, path, &names) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		if (!strncmp(names.name[i], "renderD", 7))
			(void)snprintf(meter->dev_name, sizeof(meter->dev_name), "dri/%.16s",
				       names.name[i]);
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};

	(void)err;
	if (sy_list_at(root, DRM, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		int card = card_number(names.name[i]);
		struct sy_meter *meter;
		char path[128];

		(void)snprintf(path, sizeof(path), DRM "/%.32s/device/gpu_metrics", names.name[i]);
		if (card < 0 || !sy_exists_at(root, path) ||
		    !(meter = sy_meter_list_add(found, &sy_amdgpu)))
			continue;
		(void)snprintf(meter->path, sizeof(meter->path), "%s", path);
		(void)snprintf(meter->name, sizeof(meter->name), "amdgpu-%d", card);
		meter->domain = SY_DOMAIN_ACCELERATOR;
		meter->unit = card;
		find_device(root, names.name[i], meter);
		meter->resolution = RESOLUTION_UJ;
		meter->period_us = PERIOD_US;
		meter->readable = true;
	}
}

const struct sy_reader sy_amdgpu = {
    .name = "amdgpu", .who = "anybody", .find = find, .open = open_table, .read = read_table};
