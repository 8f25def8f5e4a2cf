/* Numbers that no meter has, in files of meters: reported as unknown, and never as another
 * number. */
#include "tap.h"

#include "base/file.h"
#include "meters/meters.h"
#include "meters/readings_to_joules.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static char tree[] = "/tmp/steelyard-test-XXXXXX";
static struct sy_meters meters;
static int root = -1;

static void put(const char *path, const char *text)
{
	char folder[256];
	int fd;

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(end - path), path);
		(void)mkdirat(root, folder, 0700);
	}
	fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
	(void)close(fd);
}

/* The value of the first of `count` meters; afterwards the tree is removed. */
static int64_t read_first_meter(int count)
{
	const char *reason = "";
	int64_t value = -1;
	char command[128];
	struct sy_error err;

	sy_meters_find(&meters, root);
	if (is_int(meters.count, count, "meters are found") &&
	    ok(meters.meter[0].reader->open(root, &meters.meter[0], &err) == 0, "it is opened"))
		value = meters.meter[0].reader->read(&meters.meter[0], &reason);
	if (meters.meter[0].fd >= 0)
		(void)close(meters.meter[0].fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s/* %s/.steelyard", tree, tree);
	ok(system(command) == 0, "tidy");
	return value;
}

static void test_hwmon(void)
{
	put("sys/class/hwmon/hwmon0/name", "power_meter\n");
	put("sys/class/hwmon/hwmon0/power1_oem_info", "Grace Power Socket 99999999999\n");
	put("sys/class/hwmon/hwmon0/power1_average", "141000000\n");
	put("sys/class/hwmon/hwmon0/power1_average_interval", "9223372036854775807\n");
	is_int(read_first_meter(1), 141000000, "its watts");
	is_int(meters.meter[0].unit, -1, "a socket of that number is none");
	is_int(meters.meter[0].mean_us, 0, "nobody means over 292 million years");
	is_int(meters.meter[0].period_us, 1000000, "it is read each second");
	put("sys/class/hwmon/hwmon0/power1_oem_info", "Grace Power Socket 1\n");
	put("sys/class/hwmon/hwmon0/power1_average", "141000000\n");
	put("sys/class/hwmon/hwmon0/power1_average_interval", "2000\n");
	is_int(read_first_meter(1), 141000000, "its watts");
	is_int(meters.meter[0].unit, 1, "one that there is");
	is_int(meters.meter[0].mean_us, 2000000, "and its mean");
}

static void test_cray(void)
{
	put("sys/cray/pm_counters/accel4294967296_energy", "7 J 1 us\n");
	put("sys/cray/pm_counters/accel12_energy", "7 J 1 us\n");
	is_int(read_first_meter(1), 7000000, "its joules");
	is_int(meters.meter[0].unit, 12, "an accelerator is the one that it says");
}

static void put_event(const char *cpus, const char *scale)
{
	put("sys/bus/event_source/devices/power/type", "22\n");
	put("sys/bus/event_source/devices/power/cpumask", cpus);
	put("sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n");
	put("sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n");
	put("sys/bus/event_source/devices/power/events/energy-pkg.scale", scale);
	put("sys/devices/system/cpu/cpu0/topology/physical_package_id", "4294967295\n");
	put(".steelyard/perf/energy-pkg.0", "4294967296\n");
}

static void test_perf(void)
{
	put_event("0,9000-9100\n", "2.3283064365386962890625e-10\n");
	is_int(read_first_meter(1), 1000000, "of CPUs that there can be; 2^32 units are a joule");
	is_int(meters.meter[0].unit, -1, "no package has that number");
	put_event("0\n", "1e60\n");
	is_int(read_first_meter(1), -1, "of a unit of 10^60 J there is no count");
}

static void test_dcmi(void)
{
	const char *answer = "1dc 2c 01 f0 00 5e 02 36 01 9a 6a b2 5f e8 03 00 00 40";

	put(".steelyard/ipmi/dcmi-power", answer);
	is_int(read_first_meter(1), -1, "1dc is no byte");
	put(".steelyard/ipmi/dcmi-power", answer + 1);
	is_int(read_first_meter(1), 300000000, "dc is one");
}

static void test_sums(void)
{
	struct sy_energy energy;

	sy_energy_init(&energy, 0);
	for (int i = 0; i < 3; i++) {
		sy_energy_add(&energy, 2 * i, 0);
		sy_energy_add(&energy, 2 * i + 1, INT64_MAX);
		energy.range_uj = INT64_MAX;
		energy.last_us = 2 * i + 1;
	}
	ok(!energy.valid && energy.sum_uj >= 0, "more than 292 million years at 1 kW: %s",
	   energy.reason);
	sy_energy_init_power(&energy, 1000000, 0);
	sy_energy_add_power(&energy, 0, INT64_MAX);
	sy_energy_add_power(&energy, 2000000, INT64_MAX);
	ok(!energy.valid && energy.sum_uj == 0, "9 million megawatts: %s", energy.reason);
}

int main(void)
{
	struct sy_error err;

	if (!ok(mkdtemp(tree) != NULL, "a folder"))
		return done_testing();
	root = sy_root_open(tree, &err);
	test_hwmon();
	test_cray();
	test_perf();
	test_dcmi();
	test_sums();
	(void)close(root);
	(void)rmdir(tree);
	return done_testing();
}
