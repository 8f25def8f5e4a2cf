/* Files of every kind of meter, before a job and while it runs: what is found has words and numbers
 * in their bounds, and what is counted never goes back and is never less than nothing. */
#include "fuzz.h"

#include <fcntl.h>

#include "base/clock.h"
#include "meters/meters.h"
#include "meters/readers.h"

#define HWMON "sys/class/hwmon/hwmon0/"
#define POWER "sys/bus/event_source/devices/power/"
#define ZONES "sys/class/powercap/intel-rapl:0/"
#define CRAY  "sys/cray/pm_counters/"

/* A line "@b" begins the text of the second; "@@" what stands in them later. */
static const char *const files[] = {
    ZONES "name",
    ZONES "energy_uj",
    ZONES "max_energy_range_uj",
    ZONES "intel-rapl:0:0/name",
    ZONES "intel-rapl:0:0/energy_uj",
    HWMON "name",
    HWMON "energy1_label",
    HWMON "energy1_input",
    HWMON "power1_oem_info",
    HWMON "power1_average",
    HWMON "power1_average_interval",
    CRAY "energy",
    CRAY "accel0_energy",
    POWER "type",
    POWER "cpumask",
    POWER "events/energy-pkg",
    POWER "events/energy-pkg.scale",
    POWER "events/energy-pkg.unit",
    ".steelyard/perf/energy-pkg.0",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/class/drm/card0/device/gpu_metrics",
    "proc/driver/nvidia/gpus/0000:65:00.0/information",
    ".steelyard/ipmi/dcmi-power",
    "run/steelyard-meters/site/node.meter",
};
#define FILES (sizeof(files) / sizeof(files[0]))

static int root = -1;

static void make_folders(const char *path)
{
	char folder[128];

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(end - path), path);
		(void)mkdirat(root, folder, 0700);
	}
}

static void make_root(void)
{
	static char folder[256];
	const char *base = getenv("TMPDIR");

	(void)snprintf(folder, sizeof(folder), "%s/root-XXXXXX", base ? base : "/tmp");
	must(mkdtemp(folder) != NULL);
	root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(root >= 0);
	for (size_t i = 0; i < FILES; i++)
		make_folders(files[i]);
}

static void put(char letter, const uint8_t *text, size_t size)
{
	size_t i = (size_t)(letter - 'a');
	int fd;

	if (i >= FILES)
		return;
	fd = openat(root, files[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	(void)close(fd);
}

/* One file after the other; where what comes later begins, or the end. */
static size_t put_all(const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at + 3 <= size && data[at] == '@' && data[at + 1] != '@') {
		size_t begin = at + 3;

		for (at = begin; at < size && !(data[at] == '@' && data[at - 1] == '\n');)
			at++;
		put((char)data[begin - 2], data + begin, at - begin);
	}
	return at;
}

/* What such a file holds is of some time long ago, most often, and then is not read at all. */
static void take_told(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	struct sy_error err = {""};
	struct sy_meter_text told;

	if (sy_parse_meter_text(text, &told, &err) < 0) {
		must_say_why(&err);
	} else {
		must(told.domain != SY_DOMAIN_OTHER && told.domain != SY_DOMAIN_ACCELERATOR &&
		     told.unit >= -1 && told.value >= 0);
		must(told.at_us > 0 && told.period_us >= 100000 && told.period_us <= 60000000);
		must(told.range_uj >= 0 && told.mean_us >= 0 && told.resolution >= 0);
		must(told.value <= 9000000999999999999 && told.at_us <= 9000000999999999999);
	}
	free(text);
}

static void must_be_told_well(const struct sy_meters *meters, const struct sy_meter *meter)
{
	must(strnlen(meter->name, sizeof(meter->name)) < sizeof(meter->name));
	must(strnlen(meter->path, sizeof(meter->path)) < sizeof(meter->path));
	must(strnlen(meter->reason, sizeof(meter->reason)) < sizeof(meter->reason));
	must(strnlen(meter->identity, sizeof(meter->identity)) < sizeof(meter->identity));
	must(meter->domain <= SY_DOMAIN_ACCELERATOR && meter->unit >= -1);
	must(meter->parent >= -1 && meter->parent < meters->count);
	must(meter->range_uj >= 0 && meter->resolution >= 0 && meter->mean_us >= 0);
	must(meter->period_us >= 0 && meter->period_us <= 60000000);
	must(meter->readable == !*meter->reason);
}

/* As the process for slow meters does. */
static void read_slow(struct sy_meters *meters, int64_t now_us)
{
	for (int i = 0; i < meters->count; i++) {
		struct sy_meter *meter = &meters->meter[i];
		const char *why = "it could no longer be read";
		int64_t value;

		if (!meter->period_us || meter->fd < 0)
			continue;
		value = meter->reader->read(meter, &why);
		if (value < 0)
			sy_energy_invalidate(&meters->energy[i], why);
		else if (meter->power)
			sy_energy_add_power(&meters->energy[i], now_us, value);
		else
			sy_energy_add(&meters->energy[i], now_us, value);
	}
}

static void open_slow(struct sy_meters *meters)
{
	for (int i = 0; i < meters->count; i++) {
		struct sy_meter *meter = &meters->meter[i];
		struct sy_error err = {""};

		if (!meter->period_us || meter->reader == &sy_nvml || !meter->readable)
			continue;
		if (meter->reader->open(root, meter, &err) < 0)
			must_say_why(&err);
	}
}

static void must_only_grow(struct sy_meters *meters, struct sy_line *line, int64_t now_us)
{
	struct sy_line before = *line;

	*line = (struct sy_line){{0}};
	line->cell[SY_ENERGY] = SY_UNKNOWN;
	read_slow(meters, now_us);
	sy_meters_read(meters, now_us, line);
	for (int i = 0; i < meters->count; i++) {
		must(meters->energy[i].sum_uj >= 0 && meters->energy[i].wraps >= 0);
		must(line->cell[SY_ZONE + i] == SY_UNKNOWN || line->cell[SY_ZONE + i] >= 0);
		must(line->cell[SY_ZONE + i] == SY_UNKNOWN ||
		     line->cell[SY_ZONE + i] >= before.cell[SY_ZONE + i]);
		must(meters->energy[i].valid || meters->energy[i].reason[0]);
	}
	must(line->cell[SY_ENERGY] == SY_UNKNOWN || line->cell[SY_ENERGY] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sy_meters meters;
	struct sy_line line = {{0}};
	size_t later;

	if (root < 0)
		make_root();
	for (size_t i = 0; i < FILES; i++)
		(void)unlinkat(root, files[i], 0);
	take_told(data, size);
	later = put_all(data, size);
	sy_meters_find(&meters, root);
	must(meters.count >= 0 && meters.count <= SY_MAX_ZONES);
	for (int i = 0; i < meters.count; i++)
		must_be_told_well(&meters, &meters.meter[i]);
	sy_meters_open(&meters, root);
	open_slow(&meters);
	must_only_grow(&meters, &line, 1000000);
	if (later + 3 <= size)
		(void)put_all(data + later + 3, size - later - 3);
	for (int i = 1; i <= 3; i++)
		must_only_grow(&meters, &line, 1000000 + i * 500000);
	must(sy_meters_max_period_us(&meters) >= 0);
	for (int i = 0; i < meters.count; i++)
		if (meters.meter[i].fd >= 0)
			(void)close(meters.meter[i].fd);
	return 0;
}
