#include "meters/amdgpu.h"

#include "base/file.h"
#include "base/tree.h"

#include <stdio.h>
#include <string.h>

#define DRM	      "/sys/class/drm"
#define RESOLUTION_UJ 16 /* 2^-16 J */
#define PERIOD_US     1000000

/* Where the counter stands in a table of format 1: by its content revision. Revision 0 is not
 * aligned and has 32 bits; those after 6 are not known here. */
static size_t place_of_counter(unsigned revision)
{
	if (revision >= 1 && revision <= 4)
		return 24;
	return revision == 5 || revision == 6 ? 88 : 0; /* behind 32 figures of JPEG engines */
}

int64_t sy_amdgpu_energy_uj(const unsigned char *table, size_t length, const char **why)
{
	size_t place = length < 4 || table[2] != 1 ? 0 : place_of_counter(table[3]);
	uint64_t count = 0;

	*why = "gpu_metrics has a form that is not known here, or one without a counter";
	if (!place || length < place + sizeof(count))
		return -1;
	for (int i = 7; i >= 0; i--)
		count = count << 8 | table[place + (size_t)i];
	*why = "the GPU does not count its energy";
	if (count == UINT64_MAX || count > (uint64_t)INT64_MAX / 1000000)
		return -1;
	return (int64_t)((count >> 16) * 1000000 + ((count & 0xffff) * 1000000 >> 16));
}

static int64_t read_uj(struct sy_meter *meter, const char **why)
{
	unsigned char table[512];
	ssize_t got = pread(meter->fd, table, sizeof(table), 0);

	return got < 0 ? -1 : sy_amdgpu_energy_uj(table, (size_t)got, why);
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
	return sy_meter_unit(name + 4);
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

static void find(int root, struct sy_found *found, struct sy_error *err)
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
		    !(meter = sy_found_next(found, &sy_amdgpu)))
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
    .name = "amdgpu", .who = "anybody", .find = find, .open = open_table, .read = read_uj};
