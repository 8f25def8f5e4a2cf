/* HPE Cray EX, XC: /sys/cray/pm_counters, joules that the blade's controller counts ten times a
 * second.
 *
 * `energy` is the whole node's, accelerators included; the others are parts of it. Lines are
 * "12345 J 1795270138123456 us".
 * Source: "User Access to Compute Node Power Data", docs-csm of Cray-HPE. */
#include "meters/readers.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define COUNTERS      "/sys/cray/pm_counters"
#define RESOLUTION_UJ 1000000 /* whole joules */
#define STILL_US      5000000 /* fifty times the interval between two counts */

/* A meter's keys: the time in its line, and when we saw it change. */
enum { STAMP, CHANGED };

/* "accel2_energy" is 2, "accel_energy" of a node with one accelerator is 0; else -1. */
static int parse_accelerator(const char *name)
{
	const char *digits = name + 5, *end;

	if (strncmp(name, "accel", 5) != 0)
		return -1;
	end = digits + strspn(digits, "0123456789");
	if (strcmp(end, "_energy") != 0)
		return -1;
	return end == digits ? 0 : sy_parse_meter_unit(digits);
}

static bool set_domain(struct sy_meter *meter, const char *name)
{
	const char *word = NULL;

	meter->unit = parse_accelerator(name);
	if (!strcmp(name, "energy")) {
		meter->domain = SY_DOMAIN_NODE;
		word = "node";
	} else if (!strcmp(name, "cpu_energy")) {
		meter->domain = SY_DOMAIN_PACKAGE;
		word = "cpu";
	} else if (!strcmp(name, "memory_energy")) {
		meter->domain = SY_DOMAIN_DRAM;
		word = "memory";
	}
	if (word)
		(void)snprintf(meter->name, sizeof(meter->name), "cray-%s", word);
	if (word || meter->unit < 0)
		return word != NULL;
	meter->domain = SY_DOMAIN_ACCELERATOR;
	(void)snprintf(meter->name, sizeof(meter->name), "cray-accelerator-%d", meter->unit);
	return true;
}

static int64_t read_uj(struct sy_meter *meter, const char **reason)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC), joules, stamp = 0;
	char text[96];
	const char *end;

	if (sy_read_counters(meter->fd, text, sizeof(text)) <= 0)
		return -1;
	end = sy_number(text, &joules);
	if (!end || strncmp(end, " J", 2) != 0 || joules > INT64_MAX / RESOLUTION_UJ)
		return -1;
	if (end[2] == ' ' && sy_number(end + 3, &stamp) && stamp == meter->key[STAMP]) {
		*reason = "its time has stood still for five seconds: the blade's controller no "
			  "longer counts";
		return now - meter->key[CHANGED] > STILL_US ? -1 : joules * RESOLUTION_UJ;
	}
	meter->key[STAMP] = stamp;
	meter->key[CHANGED] = now;
	return joules * RESOLUTION_UJ;
}

static int open_file(int root, struct sy_meter *meter, struct sy_error *err)
{
	return sy_meter_open_file(root, meter->path, meter, err);
}

static void check_access(int root, struct sy_meter *meter)
{
	struct sy_error err = {""};
	const char *reason = "it holds no line \"12345 J …\"";

	if (open_file(root, meter, &err) == 0) {
		meter->readable = read_uj(meter, &reason) >= 0;
		(void)close(meter->fd);
		meter->fd = -1;
		(void)sy_fail(&err, "%s", reason);
	}
	if (!meter->readable)
		(void)snprintf(meter->reason, sizeof(meter->reason), "%s", err.text);
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};

	(void)err;
	if (sy_list_at(root, COUNTERS, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		struct sy_meter one = {0}, *meter;

		if (!set_domain(&one, names.name[i]) ||
		    !(meter = sy_meter_list_add(found, &sy_cray)))
			continue;
		(void)set_domain(meter, names.name[i]);
		(void)snprintf(meter->path, sizeof(meter->path), COUNTERS "/%.100s", names.name[i]);
		meter->resolution = RESOLUTION_UJ;
		check_access(root, meter);
	}
}

const struct sy_reader sy_cray = {
    .name = "cray", .who = "anybody", .find = find, .open = open_file, .read = read_uj};
