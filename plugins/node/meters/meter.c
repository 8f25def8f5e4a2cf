#include "meters/meter.h"

#include "base/file.h"
#include "base/number.h"

#include <string.h>

#define MOST_UNITS 10000

struct sy_meter *sy_meter_list_add(struct sy_meter_list *found, const struct sy_reader *reader)
{
	struct sy_meter *meter;

	if (found->count == found->capacity) {
		found->full = true;
		return NULL;
	}
	meter = &found->meter[found->count++];
	*meter = (struct sy_meter){.reader = reader, .unit = -1, .parent = -1, .fd = -1};
	return meter;
}

bool sy_dies_share_a_counter(int root)
{
	cleanup_close int fd = sy_open_at(root, "/proc/cpuinfo");
	char text[2048];

	return fd >= 0 && sy_read_fd(fd, text, sizeof(text)) > 0 &&
	       (strstr(text, "AuthenticAMD") || strstr(text, "HygonGenuine"));
}

const char *sy_domain_name(enum sy_domain domain)
{
	static const char *const names[] = {"other", "node",   "module", "psys",       "package",
					    "core",  "uncore", "dram",	 "accelerator"};

	return names[domain];
}

int64_t sy_meter_read_file(const struct sy_meter *meter, int64_t scale)
{
	char text[64];
	const char *end;
	int64_t value;

	if (sy_read_counters(meter->fd, text, sizeof(text)) <= 0)
		return -1;
	end = sy_number(text, &value);
	if (!end || (*end && *end != '\n' && *end != ' '))
		return -1;
	return __builtin_mul_overflow(value, scale, &value) ? -1 : value;
}

int64_t sy_meter_stale_us(const struct sy_meter *meter)
{
	return 10 * meter->period_us + 1000000;
}

int sy_parse_meter_unit(const char *digits)
{
	int64_t number;

	return sy_number(digits, &number) && number < MOST_UNITS ? (int)number : -1;
}

int64_t sy_meter_to_integer(double micro)
{
	return micro >= 0 && micro < 0x1p63 ? (int64_t)micro : -1;
}

int sy_meter_open_file(int root, const char *path, struct sy_meter *meter, struct sy_error *err)
{
	meter->fd = sy_open_at(root, path);
	if (meter->fd >= 0)
		return 0;
	return sy_fail(err, "%s: %s", strrchr(path, '/') + 1, strerror(-meter->fd));
}
