/* RAPL through perf's power events: /sys/bus/event_source/devices/power, perf_event_open(2).
 *
 * The same counters as powercap's: of use where that is not there, or may not be read. In a
 * recorded tree the counts stand in /.steelyard/perf/EVENT.CPU. Source:
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-events of the kernel. */
#include "meters/readers.h"

#include "base/file.h"
#include "base/number.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define POWER	      "/sys/bus/event_source/devices/power"
#define RESOLUTION_UJ 61 /* as powercap's */
#define CPUS	      8192

/* A meter's keys; the type is that of a recorded tree where there is no such call. */
enum { TYPE, CONFIG, CPU };
#define RECORDED (-1)

static const struct event {
	const char *event, *name;
	enum sy_domain domain;
} events[] = {
    {"energy-pkg", "package", SY_DOMAIN_PACKAGE}, {"energy-ram", "dram", SY_DOMAIN_DRAM},
    {"energy-cores", "core", SY_DOMAIN_CORE},	  {"energy-gpu", "uncore", SY_DOMAIN_UNCORE},
    {"energy-psys", "psys", SY_DOMAIN_PSYS},
};

static int open_event(const struct sy_meter *meter)
{
	struct perf_event_attr attr = {.type = (uint32_t)meter->key[TYPE],
				       .size = sizeof(attr),
				       .config = (uint64_t)meter->key[CONFIG]};

	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)meter->key[CPU], -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static int open_count(int root, struct sy_meter *meter, struct sy_error *err)
{
	char path[128];

	if (meter->key[TYPE] == RECORDED) {
		(void)snprintf(path, sizeof(path), "/.steelyard/perf/%s.%d",
			       strrchr(meter->path, '/') + 1, (int)meter->key[CPU]);
		return sy_meter_open_file(root, path, meter, err);
	}
	meter->fd = open_event(meter);
	if (meter->fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return sy_fail(err, "perf_event_open: for root only (or CAP_PERFMON, or "
				    "/proc/sys/kernel/perf_event_paranoid below 1)");
	return sy_fail_errno(err, errno, "perf_event_open");
}

static int64_t read_count(struct sy_meter *meter, const char **reason)
{
	uint64_t count;

	(void)reason;
	if (meter->key[TYPE] == RECORDED) {
		int64_t number = sy_meter_read_file(meter, 1);

		return number < 0 ? -1 : sy_meter_to_integer((double)number * meter->scale);
	}
	if (read(meter->fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	return sy_meter_to_integer((double)count * meter->scale);
}

/* µJ a count: the event's scale is in joules, and its unit file says so. */
static double read_scale(int root, const char *event)
{
	char path[128], text[64], unit[32];

	(void)snprintf(path, sizeof(path), POWER "/events/%s.scale", event);
	if (sy_read_line_at(root, path, text, sizeof(text)) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), POWER "/events/%s.unit", event);
	if (sy_read_line_at(root, path, unit, sizeof(unit)) < 0 || strcmp(unit, "Joules") != 0)
		return 0;
	return strtod(text, NULL) * 1e6;
}

/* A number of the CPU's topology; -1: unknown. */
static int read_topology(int root, long cpu, const char *what)
{
	char path[128];
	char text[32];

	(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/topology/%s", cpu, what);
	return sy_read_line_at(root, path, text, sizeof(text)) < 0 ? -1 : sy_parse_meter_unit(text);
}

/* "perf-package-1"; a second die with a counter of its own is "…-1-die-1". */
static void set_name(int root, struct sy_meter *meter, const char *event, long cpu)
{
	int die = sy_dies_share_a_counter(root) ? 0 : read_topology(root, cpu, "die_id");

	if (meter->unit < 0)
		(void)snprintf(meter->name, sizeof(meter->name), "perf-%s", event);
	else if (die > 0)
		(void)snprintf(meter->name, sizeof(meter->name), "perf-%s-%d-die-%d", event,
			       meter->unit, die);
	else
		(void)snprintf(meter->name, sizeof(meter->name), "perf-%s-%d", event, meter->unit);
}

static void check_access(int root, struct sy_meter *meter)
{
	struct sy_error err = {""};

	meter->readable = meter->scale > 0 && open_count(root, meter, &err) == 0;
	if (meter->fd >= 0)
		(void)close(meter->fd);
	meter->fd = -1;
	if (!meter->readable)
		(void)snprintf(meter->reason, sizeof(meter->reason), "%s",
			       meter->scale > 0 ? err.text : "its scale is not in joules");
}

static void add(int root, struct sy_meter_list *found, const struct event *event, int64_t type,
		long cpu)
{
	struct sy_meter *meter;
	char text[64];

	meter = sy_meter_list_add(found, &sy_perf);
	if (!meter)
		return;
	(void)snprintf(meter->path, sizeof(meter->path), POWER "/events/%s", event->event);
	if (sy_read_line_at(root, meter->path, text, sizeof(text)) < 0 ||
	    strncmp(text, "event=", 6) != 0) {
		found->count--;
		return;
	}
	meter->key[TYPE] = type;
	meter->key[CONFIG] = strtol(text + 6, NULL, 16);
	meter->key[CPU] = cpu;
	meter->domain = event->domain;
	meter->unit = read_topology(root, cpu, "physical_package_id");
	meter->scale = read_scale(root, event->event);
	meter->resolution = RESOLUTION_UJ;
	set_name(root, meter, event->name, cpu);
	check_access(root, meter);
}

/* One CPU of each package: "0,28", "0-1". */
static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	static bool wanted[CPUS];
	char cpus[256];
	int64_t type;

	(void)err;
	if (sy_read_int_at(root, POWER "/type", &type) < 0 ||
	    sy_read_line_at(root, POWER "/cpumask", cpus, sizeof(cpus)) < 0)
		return;
	if (!sy_root_is_machine(root))
		type = RECORDED;
	memset(wanted, 0, sizeof(wanted));
	if (sy_parse_number_list(cpus, wanted, CPUS) < 0)
		return;
	for (int cpu = 0; cpu < CPUS && !found->full; cpu++)
		for (size_t i = 0; wanted[cpu] && i < sizeof(events) / sizeof(events[0]); i++)
			add(root, found, &events[i], type, cpu);
}

const struct sy_reader sy_perf = {.name = "perf",
				  .who =
				      "root, CAP_PERFMON; anybody at a perf_event_paranoid below 1",
				  .find = find,
				  .open = open_count,
				  .read = read_count};
