/* Which meters make up the node's energy: each joule once, whichever meter reports it. */
#include "tap.h"

#include "meters/meters.h"
#include "meters/readers.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdlib.h>

static const struct sy_reader cray = {.name = "cray"}, dcmi = {.name = "dcmi"},
			      hwmon = {.name = "hwmon"};

static struct sy_meter list[SY_MAX_ZONES];
static int count;

static struct sy_meter *add(const struct sy_reader *reader, const char *name, enum sy_domain domain,
			    int unit)
{
	struct sy_meter *meter = &list[count++];

	*meter = (struct sy_meter){
	    .reader = reader, .domain = domain, .unit = unit, .parent = -1, .readable = true};
	(void)snprintf(meter->name, sizeof(meter->name), "%s", name);
	(void)snprintf(meter->path, sizeof(meter->path), "/sys/%s:%d", reader->name, count);
	return meter;
}

/* Those that count, as "0 2 5". */
static const char *counted(void)
{
	static char text[256];
	size_t used = 0;

	text[0] = '\0';
	(void)sy_meters_choose(list, count);
	for (int i = 0; i < count; i++)
		if (list[i].counted)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d",
						 used ? " " : "", i);
	return text;
}

static void add_rapl(void)
{
	add(&sy_powercap, "psys", SY_DOMAIN_PSYS, -1);
	add(&sy_powercap, "package-0", SY_DOMAIN_PACKAGE, 0);
	add(&sy_powercap, "core", SY_DOMAIN_CORE, 0)->parent = 1;
	add(&sy_powercap, "dram", SY_DOMAIN_DRAM, 0)->parent = 1;
	add(&sy_powercap, "package-1", SY_DOMAIN_PACKAGE, 1);
	add(&sy_powercap, "dram", SY_DOMAIN_DRAM, 1)->parent = 4;
}

static void test_rapl(void)
{
	count = 0;
	add_rapl();
	is_string(counted(), "1 3 4 5", "packages and dram of each, psys and core not");
	(void)snprintf(list[0].path, sizeof(list[0].path), "/intel-rapl-mmio:0");
	(void)snprintf(list[0].name, sizeof(list[0].name), "package-0");
	list[0].domain = SY_DOMAIN_PACKAGE;
	is_string(counted(), "1 3 4 5", "the second view comes first in the list, and does not");
	list[1].readable = false;
	is_string(counted(), "1 3 4 5", "one that cannot be read counts: the sum is not known");
}

static void test_twice(void)
{
	count = 0;
	add_rapl();
	add(&sy_perf, "perf-package-0", SY_DOMAIN_PACKAGE, 0);
	add(&sy_perf, "perf-package-1", SY_DOMAIN_PACKAGE, 1);
	is_string(counted(), "1 3 4 5", "perf tells the same counters");
	for (int i = 0; i < 6; i++)
		list[i].readable = false;
	is_string(counted(), "3 5 6 7", "where powercap's cannot be read perf's packages count");
	add(&cray, "cray-node", SY_DOMAIN_NODE, -1);
	add(&cray, "cray-accelerator-0", SY_DOMAIN_ACCELERATOR, 0);
	is_string(counted(), "8", "a counter of the whole node holds all");
	list[8].readable = false;
	is_string(counted(), "3 5 6 7", "unless it cannot be read");
	for (int i = 0; i < count; i++)
		list[i].readable = false;
	is_string(counted(), "8", "none can be read: what would be best");
}

static void test_power(void)
{
	count = 0;
	add(&dcmi, "dcmi-node", SY_DOMAIN_NODE, -1)->power = true;
	add(&hwmon, "hwmon-package-0", SY_DOMAIN_PACKAGE, 0)->power = true;
	is_string(counted(), "0", "watts, where there is nothing better");
	add(&hwmon, "hwmon-socket-0", SY_DOMAIN_PACKAGE, 0);
	is_string(counted(), "2", "a counter of joules is better");
	count = 0;
	add(&cray, "cray-accelerator-0", SY_DOMAIN_ACCELERATOR, 0);
	is_string(counted(), "", "an accelerator is no node");
}

/* The call itself, on a counter that every kernel has: nanoseconds that CPU 0 was there. */
static void test_perf_call(int root)
{
	struct sy_meter meter = {.reader = &sy_perf, .fd = -1, .key = {1, 0, 0}, .scale = 1e-3};
	int64_t before, after, begin, first, last, end;
	const char *reason = "";
	struct sy_error err;

	if (sy_perf.open(root, &meter, &err) < 0) {
		ok(true, "# SKIP perf_event_open: %s", err.text);
		return;
	}
	begin = sy_now_us(CLOCK_MONOTONIC);
	before = sy_perf.read(&meter, &reason);
	first = sy_now_us(CLOCK_MONOTONIC);
	(void)usleep(300000);
	last = sy_now_us(CLOCK_MONOTONIC);
	after = sy_perf.read(&meter, &reason);
	end = sy_now_us(CLOCK_MONOTONIC);
	/* Two clocks, of which one is slewed: a millisecond. */
	ok(after - before > last - first - 1000 && after - before <= end - begin,
	   "%lld of %lld to %lld", (long long)(after - before), (long long)(last - first),
	   (long long)(end - begin));
	(void)close(meter.fd);
}

static char tree[] = "/tmp/steelyard-test-XXXXXX";

static void put_zone(int package, int inner, const char *name)
{
	char path[256], command[512];

	(void)snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:%d", tree, package);
	if (inner >= 0)
		(void)snprintf(path + strlen(path), 16, ":%d", inner);
	(void)snprintf(command, sizeof(command),
		       "mkdir -p %s && echo %s > %s/name && echo 1000 > %s/energy_uj && "
		       "echo 999999 > %s/max_energy_range_uj",
		       path, name, path, path, path);
	if (system(command) != 0)
		is_int(1, 0, "a tree");
}

/* 30 packages with core and dram: 90 zones, of which 60 count. */
static void test_more_than_there_is_room_for(int packages)
{
	static struct sy_meters meters;
	struct sy_error err;
	char command[64];
	int root, sum = 0, orphans = 0;

	for (int i = 0; i < packages; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "package-%d", i);
		put_zone(i, -1, name);
		put_zone(i, 0, "core");
		put_zone(i, 1, "dram");
	}
	root = sy_root_open(tree, &err);
	sy_meters_find(&meters, root);
	for (int i = 0; i < meters.count; i++) {
		const struct sy_meter *meter = &meters.meter[i];

		sum += meter->counted;
		orphans += meter->domain == SY_DOMAIN_DRAM &&
			   meters.meter[meter->parent].unit != meter->unit;
	}
	is_int(meters.count, SY_MAX_ZONES, "as many zones as there is room for");
	is_int(orphans, 0, "each within its package");
	if (packages * 2 <= SY_MAX_ZONES)
		is_int(sum, packages * 2, "all that count are among them");
	else
		ok(sum == 0 && strstr(meters.none, "more meters"), "no sum of some: %s",
		   meters.none);
	(void)snprintf(command, sizeof(command), "rm -rf %s/sys", tree);
	ok(system(command) == 0, "tidy");
	(void)close(root);
}

int main(void)
{
	struct sy_error err;
	int root;

	test_rapl();
	test_twice();
	test_power();
	root = sy_root_open("/", &err);
	test_perf_call(root);
	(void)close(root);
	if (!ok(mkdtemp(tree) != NULL, "a folder"))
		return done_testing();
	test_more_than_there_is_room_for(30);
	test_more_than_there_is_room_for(33);
	(void)rmdir(tree);
	return done_testing();
}
