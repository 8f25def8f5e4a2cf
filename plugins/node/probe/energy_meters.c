/* Energy meters of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"
#include "meters/meters.h"
#include "meters/readers.h"
#include "probe/document_values.h"

#include <stdio.h>

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
	sy_probe_set(document, entry, "meters", i, "name", sy_probe_text(meter->name),
		     "its file name cannot be read");
	sy_probe_set(document, entry, "meters", i, "unit", sy_probe_int(meter->unit),
		     "it is the only one, or its number is unknown");
	sy_probe_set(document, entry, "meters", i, "max_energy_range_j", range,
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
		sy_probe_append(document, list, meter_entry(document, meters, i));
	if (meters && *meters->none)
		sy_doc_put_reason(document, "meters", "%s", meters->none);
	sy_doc_put(document, "meters", list);
}
