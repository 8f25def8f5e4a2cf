/* Network devices and meters of energy of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"
#include "counters/netdev_inventory.h"
#include "meters/meters.h"
#include "meters/readers.h"

#include <stdio.h>

/* A value of a list's entry, or null with its reason at "LIST.INDEX.KEY". */
static void set_or_reason(struct sy_document *document, json_t *entry, const char *list,
			  size_t index, const char *key, json_t *value, const char *reason)
{
	char path[96];

	if (!value) {
		(void)snprintf(path, sizeof(path), "%s.%zu.%s", list, index, key);
		sy_doc_put_reason(document, path, "%s", reason);
		value = json_null();
	}
	if (json_object_set_new(entry, key, value))
		document->failed = true;
}

static json_t *text_or_null(const char *text)
{
	return *text ? sy_json_text(text) : NULL;
}

static json_t *int_or_null(int64_t value)
{
	return value >= 0 ? json_integer(value) : NULL;
}

static json_t *network_entry(struct sy_document *document, size_t i, const struct sy_netdev *device)
{
	json_t *entry = json_pack("{s:s, s:s, s:b}", "name", device->name, "kind",
				  sy_netdev_kind_name(device->kind), "counted", device->counted);

	set_or_reason(document, entry, "network", i, "driver", text_or_null(device->driver),
		      "the device hangs on no bus: it has no driver");
	set_or_reason(document, entry, "network", i, "speed_bits_per_s",
		      int_or_null(device->speed_bits_per_s), "its driver does not report it");
	set_or_reason(document, entry, "network", i, "mtu", int_or_null(device->mtu),
		      "its file mtu cannot be read");
	set_or_reason(document, entry, "network", i, "mac", text_or_null(device->mac),
		      "its file address is empty or cannot be read");
	set_or_reason(document, entry, "network", i, "state", text_or_null(device->state),
		      "its file operstate cannot be read");
	return entry;
}

static void append(struct sy_document *document, json_t *list, json_t *entry)
{
	if (json_array_append_new(list, entry))
		document->failed = true;
}

void sy_probe_network(int root, struct sy_document *document)
{
	cleanup_free struct sy_netdev *devices = calloc(SY_NETDEV_MAX, sizeof(*devices));
	struct sy_error reason = {{0}};
	json_t *list = json_array();
	int count = 0;

	if (devices)
		count = sy_netdev_find(root, devices, SY_NETDEV_MAX, &reason);
	else
		document->failed = true;
	for (int i = 0; i < count; i++)
		append(document, list, network_entry(document, (size_t)i, &devices[i]));
	if (*reason.text)
		sy_doc_put_reason(document, "network", "%s", reason.text);
	sy_doc_put(document, "network", list);
}

static json_t *meter_entry(struct sy_document *document, const struct sy_meters *meters, size_t i)
{
	const struct sy_meter *meter = &meters->meter[i];
	json_t *range = NULL;
	char path[64];
	json_t *entry = json_pack(
	    "{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:s}", "meter", meter->reader->name, "path",
	    meter->path, "parent", meter->parent < 0 ? "" : meters->meter[meter->parent].path,
	    "covers", sy_domain_name(meter->domain), "measures", meter->power ? "power" : "energy",
	    "readable", meter->readable, "counted", meter->counted, "read_by", meter->reader->who);

	if (meter->range_uj)
		range = json_real((double)meter->range_uj / 1e6);
	set_or_reason(document, entry, "meters", i, "name", text_or_null(meter->name),
		      "its file name cannot be read");
	set_or_reason(document, entry, "meters", i, "unit", int_or_null(meter->unit),
		      "it is the only one, or its number is unknown");
	set_or_reason(document, entry, "meters", i, "max_energy_range_j", range,
		      meter->reader == &sy_powercap ? "its file max_energy_range_uj cannot be read"
						    : "it does not start again");
	if (*meter->reason) {
		(void)snprintf(path, sizeof(path), "meters.%zu.readable", i);
		sy_doc_put_reason(document, path, "%s", meter->reason);
	}
	return entry;
}

void sy_probe_meters(int root, struct sy_document *document)
{
	cleanup_free struct sy_meters *meters = calloc(1, sizeof(*meters));
	json_t *list = json_array();

	if (meters)
		sy_meters_find(meters, root);
	else
		document->failed = true;
	for (size_t i = 0; meters && i < (size_t)meters->count; i++)
		append(document, list, meter_entry(document, meters, i));
	if (meters && *meters->none)
		sy_doc_put_reason(document, "meters", "%s", meters->none);
	sy_doc_put(document, "meters", list);
}
