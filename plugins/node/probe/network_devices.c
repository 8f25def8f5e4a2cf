/* Network devices of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"
#include "counters/netdev_inventory.h"
#include "probe/document_values.h"

static json_t *network_entry(struct sy_document *document, size_t i, const struct sy_netdev *device)
{
	json_t *entry = json_pack("{s:s, s:s, s:b}", "name", device->name, "kind",
				  sy_netdev_kind_name(device->kind), "counted", device->counted);

	sy_probe_set(document, entry, "network", i, "driver", sy_probe_text(device->driver),
		     "the device hangs on no bus: it has no driver");
	sy_probe_set(document, entry, "network", i, "speed_bits_per_s",
		     sy_probe_int(device->speed_bits_per_s), "its driver does not report it");
	sy_probe_set(document, entry, "network", i, "mtu", sy_probe_int(device->mtu),
		     "its file mtu cannot be read");
	sy_probe_set(document, entry, "network", i, "mac", sy_probe_text(device->mac),
		     "its file address is empty or cannot be read");
	sy_probe_set(document, entry, "network", i, "state", sy_probe_text(device->state),
		     "its file operstate cannot be read");
	return entry;
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
		sy_probe_append(document, list, network_entry(document, (size_t)i, &devices[i]));
	if (*reason.text)
		sy_doc_put_reason(document, "network", "%s", reason.text);
	sy_doc_put(document, "network", list);
}
