/* Meters under /sys/class/hwmon: counters of sockets (amd_energy) and of Intel's GPUs (i915, xe),
 * and the watts of ACPI's power meters where they say what they measure (NVIDIA Grace).
 *
 * Other sensors of power (disks, network cards, power supplies) are not read: none states which
 * parts of the node it covers.
 * Sources: Documentation/hwmon/{sysfs-interface,amd_energy,acpi_power_meter}.rst and
 * Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon of the kernel; NVIDIA Grace
 * Performance Tuning Guide, "Power and Thermals". */
#include "meters/readers.h"

#include "base/file.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

#define HWMON	     "/sys/class/hwmon"
#define PERIOD_US    1000000 /* where a meter does not say over which time it means */
#define LEAST_US     100000
#define MOST_US	     5000000
#define MOST_MEAN_MS 86400000 /* a day: more is no number of a meter's */

static int64_t read_micro(struct sy_meter *meter, const char **reason)
{
	(void)reason;
	return sy_meter_read_file(meter, 1);
}

static int open_file(int root, struct sy_meter *meter, struct sy_error *err)
{
	return sy_meter_open_file(root, meter->path, meter, err);
}

/* A first reading: for a power meter the one that may take long. */
static void check_access(int root, struct sy_meter *meter)
{
	struct sy_error err = {""};

	meter->readable = open_file(root, meter, &err) == 0;
	if (meter->readable && !meter->power && read_micro(meter, NULL) < 0) {
		meter->readable = false;
		(void)sy_fail(&err, "it holds no number");
	}
	if (meter->fd >= 0)
		(void)close(meter->fd);
	meter->fd = -1;
	if (!meter->readable)
		(void)snprintf(meter->reason, sizeof(meter->reason), "%s", err.text);
}

/* The line of "PREFIX_SUFFIX" for a file "PREFIX_input"; "" when there is no such file. */
static void read_sibling(int root, const char *folder, const char *file, const char *suffix,
			 char *text, size_t size)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%.*s%s", folder, (int)strcspn(file, "_"), file,
		       suffix);
	if (sy_read_line_at(root, path, text, size) < 0)
		text[0] = '\0';
}

/* amd_energy, and zenergy, the same driver outside the kernel's tree: "Esocket1". Energy of
 * cores is part of the socket's, and there may be hundreds of cores. */
static bool set_energy_domain(struct sy_meter *meter, const char *driver, const char *label)
{
	meter->resolution = 16; /* 2^-16 J, the unit of most; the actual unit is not available */
	if ((!strcmp(driver, "amd_energy") || !strcmp(driver, "zenergy")) &&
	    !strncmp(label, "Esocket", 7))
		meter->unit = sy_parse_meter_unit(label + 7);
	if (meter->unit >= 0) {
		meter->domain = SY_DOMAIN_PACKAGE;
		(void)snprintf(meter->name, sizeof(meter->name), "hwmon-package-%d", meter->unit);
		return true;
	}
	if (strcmp(driver, "i915") != 0 && strcmp(driver, "xe") != 0)
		return false;
	if (*label && strcmp(label, "card") != 0) /* its package is part of the card */
		return false;
	meter->domain = SY_DOMAIN_ACCELERATOR;
	(void)snprintf(meter->name, sizeof(meter->name), "hwmon-%s", driver);
	return true;
}

/* The label that firmware writes for a meter: "Grace Power Socket 0". */
static bool set_power_domain(struct sy_meter *meter, const char *oem)
{
	static const struct {
		const char *format, *name;
		enum sy_domain domain;
	} words[] = {{"Module Power Socket %d", "module", SY_DOMAIN_MODULE},
		     {"Grace Power Socket %d", "package", SY_DOMAIN_PACKAGE},
		     {"CPU Power Socket %d", "core", SY_DOMAIN_CORE},
		     {"SysIO Power Socket %d", "uncore", SY_DOMAIN_UNCORE}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i].format) - 2;

		if (strncmp(oem, words[i].format, length) != 0)
			continue;
		meter->unit = sy_parse_meter_unit(oem + length);
		meter->domain = words[i].domain;
		(void)snprintf(meter->name, sizeof(meter->name), "hwmon-%s-%d", words[i].name,
			       meter->unit);
		return true;
	}
	return false;
}

/* A mean over some time is read once in that time: each value represents its own interval. */
static void read_mean_period(int root, const char *folder, const char *file, struct sy_meter *meter)
{
	char text[32];
	int64_t mean_ms, mean_us = 0;

	read_sibling(root, folder, file, "_average_interval", text, sizeof(text));
	if (sy_number(text, &mean_ms) && mean_ms < MOST_MEAN_MS)
		mean_us = mean_ms * 1000;
	meter->period_us = mean_us ? mean_us : PERIOD_US;
	if (meter->period_us < LEAST_US)
		meter->period_us = LEAST_US;
	if (meter->period_us > MOST_US)
		meter->period_us = MOST_US;
	meter->mean_us = mean_us;
}

static void add(int root, struct sy_meter_list *found, const char *folder, const char *driver,
		const char *file)
{
	bool power = !strncmp(file, "power", 5);
	struct sy_meter one = {.unit = -1}, *meter;
	char text[64];

	if (!power && strncmp(file, "energy", 6) != 0)
		return;
	if (!sy_ends_with(file, power ? "_average" : "_input"))
		return;
	read_sibling(root, folder, file, power ? "_oem_info" : "_label", text, sizeof(text));
	if (power ? !set_power_domain(&one, text) : !set_energy_domain(&one, driver, text))
		return;
	meter = sy_meter_list_add(found, &sy_hwmon);
	if (!meter)
		return;
	one.reader = &sy_hwmon;
	one.fd = one.parent = -1;
	one.power = power;
	*meter = one;
	(void)snprintf(meter->path, sizeof(meter->path), "%.100s/%.50s", folder, file);
	if (power)
		read_mean_period(root, folder, file, meter);
	check_access(root, meter);
}

/* ACPI's power meter has its files in the folder of the device. */
static void find_in_folder(int root, struct sy_meter_list *found, const char *folder)
{
	cleanup_names struct sy_names names = {0};
	char path[256], driver[32];

	(void)snprintf(path, sizeof(path), "%s/name", folder);
	if (sy_read_line_at(root, path, driver, sizeof(driver)) < 0)
		driver[0] = '\0';
	if (sy_list_at(root, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++)
		add(root, found, folder, driver, names.name[i]);
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};

	(void)err;
	if (sy_list_at(root, HWMON, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		char folder[256];

		(void)snprintf(folder, sizeof(folder), HWMON "/%.100s", names.name[i]);
		find_in_folder(root, found, folder);
		(void)strcat(folder, "/device");
		find_in_folder(root, found, folder);
	}
}

const struct sy_reader sy_hwmon = {.name = "hwmon",
				   .who = "root (amd_energy), else as its file's mode says",
				   .find = find,
				   .open = open_file,
				   .read = read_micro};
