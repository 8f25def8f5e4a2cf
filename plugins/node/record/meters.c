/* The energy meters in a record: their properties, and their results. */
#include "record/record.h"

#include "base/json_document.h"
#include "meters/readers.h"

#include <stdio.h>
#include <string.h>

static void put(json_t *record, int i, const char *field, json_t *value, const char *reason)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "energy.zones.%d.%s", i, field);
	sy_json_put(record, path, value, reason);
}

static json_t *micro_or_null(int64_t value)
{
	return value > 0 ? json_real((double)value / 1e6) : json_null();
}

static void put_quantity(json_t *record, int i, bool power, int64_t resolution)
{
	put(record, i, "measures", json_string(power ? "power" : "energy"), NULL);
	put(record, i, power ? "resolution_w" : "resolution_j", micro_or_null(resolution),
	    "not told");
}

static void put_kind(json_t *record, int i, const struct sy_meter *meter)
{
	put(record, i, "meter", json_string(meter->reader->name), NULL);
	put(record, i, "covers", json_string(sy_domain_name(meter->domain)), NULL);
	put(record, i, "unit", meter->unit < 0 ? json_null() : json_integer(meter->unit),
	    "it is the only one, or its number is unknown");
	if (*meter->identity)
		put(record, i, "identity", sy_json_text(meter->identity), NULL);
	put_quantity(record, i, meter->power, meter->resolution);
	put(record, i, "period_s", micro_or_null(meter->period_us), "read with every sample");
}

static void put_meter(json_t *record, int i, const struct sy_meter *meter, const char *name)
{
	json_t *zones = json_object_get(json_object_get(record, "energy"), "zones");

	(void)json_array_append_new(zones, json_pack("{so so}", "name", sy_json_text(name), "path",
						     sy_json_text(meter->path)));
	put(record, i, "energy_j", json_null(), meter->readable ? SY_NOT_YET : meter->reason);
	put(record, i, "max_energy_range_j", micro_or_null(meter->range_uj),
	    meter->reader == &sy_powercap ? "max_energy_range_uj could not be read"
					  : "it does not start again");
	put(record, i, "wraps", json_integer(0), NULL);
	put(record, i, "counted", json_boolean(meter->counted), NULL);
	put_kind(record, i, meter);
}

/* Why the node has no energy. */
static const char *missing_energy_reason(const struct sy_meters *meters)
{
	for (int i = meters->count - 1; i >= 0; i--)
		if (meters->meter[i].counted && !meters->meter[i].readable)
			return meters->meter[i].reason;
	return meters->none;
}

/* The parts that are summed, each once; and whether any of them is an integral over readings. */
static void put_covers(json_t *record, const struct sy_meters *meters)
{
	json_t *covers = json_array();
	bool power = false, covered[SY_DOMAIN_ACCELERATOR + 1] = {false};

	for (int i = 0; i < meters->count; i++) {
		const struct sy_meter *meter = &meters->meter[i];

		if (meter->counted && !covered[meter->domain])
			(void)json_array_append_new(covers,
						    json_string(sy_domain_name(meter->domain)));
		covered[meter->domain] |= meter->counted;
		power |= meter->counted && meter->power;
	}
	sy_json_put(record, "energy.covers", covers, NULL);
	sy_json_put(record, "energy.integrated", json_boolean(power), NULL);
}

void sy_record_meters(json_t *record, const struct sy_meters *meters,
		      const struct sy_labels *labels)
{
	const char *reason = missing_energy_reason(meters);

	sy_json_put(record, "energy.zones", json_array(), NULL);
	for (int i = 0; i < meters->count; i++)
		put_meter(record, i, &meters->meter[i], labels->zone[i].text);
	if (*reason)
		sy_json_put(record, "energy.energy_j", json_null(), reason);
	sy_json_put(record, "energy.scope", json_string("node"), NULL);
	put_covers(record, meters);
}

/* The total's reason is that of the first part that is not known. */
static void explain(json_t *record, const char *path, const char *reason)
{
	const char *known = sy_json_reason(record, path);

	if (known && (!strcmp(known, SY_NO_VALUE) || !strcmp(known, SY_NOT_YET)))
		sy_json_explain(record, path, reason);
}

/* The reader of a slow meter finds at its first reading that nothing counts its joules. */
static void correct_quantity(json_t *record, int i, json_t *zone, bool power)
{
	const char *measures = json_string_value(json_object_get(zone, "measures"));

	if (!power || !measures || strcmp(measures, "energy") != 0)
		return;
	(void)json_object_del(zone, "resolution_j");
	put_quantity(record, i, true, 0);
}

void sy_record_meters_end(json_t *record, const struct sy_status *status,
			  const char reason[][SY_REASON_SIZE])
{
	json_t *zones = json_object_get(json_object_get(record, "energy"), "zones");

	for (int i = 0; i < (int)json_array_size(zones) && i < SY_MAX_ZONES; i++) {
		json_t *zone = json_array_get(zones, (size_t)i);
		char path[64];

		(void)json_object_set_new(zone, "wraps", json_integer(status->meter[i].wraps));
		(void)json_object_set_new(zone, "elapsed_s",
					  json_real((double)status->meter[i].elapsed_us / 1e6));
		correct_quantity(record, i, zone, status->meter[i].power);
		if (!*reason[i])
			continue;
		(void)snprintf(path, sizeof(path), "energy.zones.%d.energy_j", i);
		explain(record, path, reason[i]);
		if (json_is_true(json_object_get(zone, "counted")))
			explain(record, "energy.energy_j", reason[i]);
	}
	sy_record_gpu_energy(record); /* in the words of its zones */
}
