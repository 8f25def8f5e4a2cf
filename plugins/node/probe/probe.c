/* The probe's document: docs/formats.md, part 3. */
#include "probe/probe.h"

#include "base/error.h"
#include "base/json_document.h"
#include "probe/detect.h"

#include <stdio.h>

static json_t *evidence_list(const struct sy_layer *layer)
{
	json_t *list = json_array();

	for (size_t i = 0; i < layer->count; i++) {
		const struct sy_evidence *evidence = &layer->evidence[i];
		json_t *entry = json_pack("{s:s, s:o, s:s}", "source", evidence->source, "value",
					  sy_json_text(evidence->value), "name", evidence->name);

		if (json_array_append_new(list, entry)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void put_layer(struct sy_document *document, const char *path, const struct sy_layer *layer,
		      const char *unknown)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.name", path);
	if (layer->name)
		sy_doc_put_text(document, name, layer->name);
	else
		sy_doc_put_null(document, name, "%s", unknown);
	(void)snprintf(name, sizeof(name), "%s.confidence", path);
	sy_doc_put_text(document, name, sy_confidence_name(layer->confidence));
	(void)snprintf(name, sizeof(name), "%s.evidence", path);
	sy_doc_put(document, name, evidence_list(layer));
}

static void put_virtualization(const struct sy_probe_options *options, struct sy_document *document)
{
	struct sy_virtualization found;

	sy_detect(options->root, options->run_programs, &found);
	if (found.node_type)
		sy_doc_put_text(document, "node_type", found.node_type);
	else
		sy_doc_put_null(document, "node_type", "the %s layer is not known",
				found.container.name ? "machine" : "container");
	put_layer(document, "virtualization.vm", &found.vm,
		  "no source of this was readable: no CPUID, /proc/cpuinfo, DMI, device tree");
	put_layer(document, "virtualization.container", &found.container,
		  "no source of this was readable: is /proc mounted?");
	put_layer(document, "virtualization.cloud", &found.cloud,
		  "no DMI and nothing from cloud-init: no way to know");
	if (found.detail)
		sy_doc_put_text(document, "virtualization.detail", found.detail);
	else
		sy_doc_put_null(document, "virtualization.detail", "no detail is known of '%s'",
				found.vm.name ? found.vm.name : "not known");
}

static void put_host(int root, struct sy_document *document)
{
	sy_doc_put_line(document, "hostname", root, "/proc/sys/kernel/hostname");
	sy_doc_put_line(document, "machine_id", root, "/etc/machine-id");
	sy_doc_put_line(document, "boot_id", root, "/proc/sys/kernel/random/boot_id");
}

static void put_kernel(int root, struct sy_document *document)
{
	static const char clock[] = "/sys/devices/system/clocksource/clocksource0/";
	char path[128];

	sy_doc_put_line(document, "kernel.release", root, "/proc/sys/kernel/osrelease");
	sy_doc_put_line(document, "kernel.version", root, "/proc/version");
	sy_doc_put_line(document, "kernel.cmdline", root, "/proc/cmdline");
	(void)snprintf(path, sizeof(path), "%scurrent_clocksource", clock);
	sy_doc_put_line(document, "clock.source", root, path);
	(void)snprintf(path, sizeof(path), "%savailable_clocksource", clock);
	sy_doc_put_list(document, "clock.available", root, path);
}

static void put_tcp(int root, struct sy_document *document)
{
	sy_doc_put_line(document, "tcp.congestion_control", root,
			"/proc/sys/net/ipv4/tcp_congestion_control");
	sy_doc_put_list(document, "tcp.available", root,
			"/proc/sys/net/ipv4/tcp_available_congestion_control");
	sy_doc_put_line(document, "tcp.default_qdisc", root, "/proc/sys/net/core/default_qdisc");
}

json_t *sy_probe(const struct sy_probe_options *options)
{
	struct sy_document document = {.top = json_object(), .missing = json_object()};
	unsigned shortages = sy_get_shortages();

	if (!document.top || !document.missing) {
		json_decref(document.top);
		json_decref(document.missing);
		return NULL;
	}
	sy_doc_put_text(&document, "format", "steelyard-probe");
	sy_doc_put_int(&document, "version", 1);
	put_host(options->root, &document);
	put_virtualization(options, &document);
	put_kernel(options->root, &document);
	sy_probe_platform(options->root, &document);
	sy_probe_cpu(options->root, &document);
	sy_probe_memory(options->root, &document);
	put_tcp(options->root, &document);
	sy_probe_network(options->root, &document);
	sy_probe_filesystems(options->root, &document);
	sy_probe_meters(options->root, &document);
	sy_doc_put(&document, "missing", document.missing);
	if (document.failed || sy_get_shortages() != shortages) {
		json_decref(document.top);
		return NULL;
	}
	return document.top;
}
