#include "record/record.h"

#include "base/json_document.h"
#include "meters/idle_power_setting.h"

#include <stdio.h>

#define NOT_TOLD "not reported to the sampler"

json_t *sy_count_or_null(int64_t value)
{
	return value == SY_UNKNOWN ? json_null() : json_integer(value);
}

json_t *sy_micro_or_null(int64_t value)
{
	return value == SY_UNKNOWN ? json_null() : json_real((double)value / 1e6);
}

static json_t *text_or_null(const char *text)
{
	return text ? sy_json_text(text) : json_null();
}

static void put_job(json_t *record, const struct sy_sampling *sampling)
{
	static const char *const fields[] = {"cluster",	      "job_id",	       "array_job_id",
					     "array_task_id", "restart_count", "user_id",
					     "nodes",	      "name",	       "exclusive"};
	char path[64];

	sy_json_put(record, "job.scheduler", json_string("none"), NULL);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		(void)snprintf(path, sizeof(path), "job.%s", fields[i]);
		sy_json_put(record, path, json_null(), NOT_TOLD);
	}
	sy_json_put(record, "job.job_id", sy_json_text(sampling->job_id), NULL);
	sy_json_put(record, "job.command", json_null(), "the sampler did not start the command");
	if (!sampling->command)
		return;
	sy_json_put(record, "job.command", json_array(), NULL);
	for (char **word = sampling->command; *word; word++)
		(void)json_array_append_new(
		    json_object_get(json_object_get(record, "job"), "command"),
		    sy_json_text(*word));
}

static void put_notes(json_t *record, const struct sy_sampling *sampling)
{
	const char *field;
	json_t *value;
	char path[96];

	json_object_foreach(sampling->notes.job, field, value)
	{
		(void)snprintf(path, sizeof(path), "job.%s", field);
		sy_json_put(record, path, json_incref(value), NULL);
	}
	(void)json_object_set_new(record, "tags", json_deep_copy(sampling->notes.tags));
}

const char *sy_record_unmet(const struct sy_sampling *sampling, const char *field,
			    const char *otherwise)
{
	json_t *unmet = json_object_get(sampling->notes.conditions, "unmet");
	const char *reason = json_string_value(json_object_get(unmet, field));

	return reason ? reason : otherwise;
}

static void put_conditions(json_t *record, const struct sy_sampling *sampling)
{
	json_t *cache = json_object_get(sampling->notes.conditions, "cache");

	sy_json_put(record, "cache", cache ? json_incref(cache) : json_null(),
		    sy_record_unmet(sampling, "cache", "none was asked for"));
	sy_json_put(record, "network_conditions", json_null(),
		    sampling->run_dir ? sy_record_unmet(sampling, "network_conditions", SY_NOT_YET)
				      : "the sampler has no folder of states (--run-dir)");
}

/* In the administrator's words, or why there are none. */
static void put_idle_power(json_t *record, const struct sy_head *head)
{
	double watts;
	struct sy_error err = {""};
	bool known = sy_idle_power_read(head->node->root, head->sampling->node, &watts, &err) == 0;

	sy_json_put(record, "energy.idle_w", known ? json_real(watts) : json_null(), err.text);
	sy_json_put(record, "energy.idle_source", known ? json_string(SY_NODE_CONF) : json_null(),
		    err.text);
}

static void put_devices(json_t *record, const struct sy_node *node)
{
	static const char *const counters[] = {"rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped"};
	json_t *devices = json_array();
	char path[64];

	sy_json_put(record, "network.devices", devices, NULL);
	for (int i = 0; i < node->devices; i++) {
		const struct sy_netdev *device = &node->device[i];

		(void)json_array_append_new(devices, json_pack("{so ss sb}", "name",
							       sy_json_text(device->name), "kind",
							       sy_netdev_kind_name(device->kind),
							       "counted", (int)device->counted));
		for (int c = 0; c < 4; c++) {
			(void)snprintf(path, sizeof(path), "network.devices.%d.%s", i, counters[c]);
			sy_json_put(record, path, json_null(), SY_NOT_YET);
		}
	}
}

/* Why the node has no traffic. */
static void explain_devices(json_t *record, const struct sy_node *node)
{
	const char *reason = node->no_devices;
	bool counted = false;

	for (int i = 0; i < node->devices; i++)
		counted |= node->device[i].counted;
	if (!counted && !*reason)
		reason = "no network device counts as an uplink";
	if (counted)
		return;
	sy_json_put(record, "network.rx_bytes", json_null(), reason);
	sy_json_put(record, "network.tx_bytes", json_null(), reason);
}

static void put_empty(json_t *record, const char *const paths[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		sy_json_put(record, paths[i], json_null(), SY_NOT_YET);
}

static void put_empty_of(json_t *record, enum sy_cell cell, enum sy_over over_time)
{
	for (int i = 0; i < SY_TOTALS; i++)
		if (sy_total_facts[i].cell == cell && sy_total_facts[i].over_time == over_time)
			put_empty(record, &sy_total_facts[i].path, 1);
}

/* In the order in which a record has its fields. */
static void put_empty_totals(json_t *record)
{
	static const char *const sources[] = {
	    "end_unix_s", "cpu.user_s",	   "cpu.system_s",
	    "cpu.source", "memory.source", "memory.charged_peak_bytes",
	    "io.source",
	};
	static const char *const others[] = {
	    "clock.steps",
	    "clock.step_s",
	    "sampler.samples_lost",
	    "sampler.samples_lost_reason",
	    "sampler.missed_deadlines",
	    "sampler.cpu_s",
	    "sampler.max_memory_bytes",
	    "pressure.scope",
	    "cpu.node_steal_s",
	};

	for (int cell = 0; cell < SY_FIXED; cell++)
		put_empty_of(record, (enum sy_cell)cell, SY_OVER_LAST);
	put_empty(record, sources, sizeof(sources) / sizeof(sources[0]));
	put_empty_of(record, SY_NO_CELL, SY_OVER_LAST);
	for (int cell = 0; cell < SY_FIXED; cell++)
		put_empty_of(record, (enum sy_cell)cell, SY_OVER_LARGEST);
	put_empty(record, others, sizeof(others) / sizeof(others[0]));
	sy_record_no_tcp(record, SY_NOT_YET);
	sy_json_put(record, "sampler.samples", json_integer(0), NULL);
}

json_t *sy_record_new(const struct sy_head *head)
{
	const struct sy_sampling *sampling = head->sampling;
	json_t *record =
	    json_pack("{ss si ss sb ss ss so}", "format", "steelyard-record", "version", 1,
		      "steelyard", SY_VERSION, "complete", 0, "incomplete_reason",
		      "the job was still running when this was written", "incomplete_of", "job",
		      "node", sy_json_text(sampling->node));
	const char *no_exit =
	    sampling->command ? SY_NOT_YET : "the sampler did not start the command";

	(void)json_object_set_new(record, "missing", json_object());
	put_job(record, sampling);
	put_notes(record, sampling);
	put_conditions(record, sampling);
	sy_json_put(record, "start_unix_s", json_real((double)head->start_unix_s), NULL);
	sy_json_put(record, "exit.exit_code", json_null(), no_exit);
	sy_json_put(record, "exit.signal", json_null(), no_exit);
	sy_json_put(record, "exit.elapsed_s", json_null(), no_exit);
	put_empty_totals(record);
	sy_record_meters(record, &head->node->meters, &head->node->labels);
	put_idle_power(record, head);
	sy_record_gpus(record, &head->node->meters, &sampling->notes);
	put_devices(record, head->node);
	explain_devices(record, head->node);
	sy_json_put(record, "network.scope", json_string("node"), NULL);
	sy_json_put(record, "sampler.rate_hz", json_real(sampling->rate_hz), NULL);
	sy_json_put(record, "samples_file", text_or_null(head->samples_file),
		    "the file of samples could not be made, or sampling was off");
	sy_json_put(record, "probe", head->probe ? json_incref(head->probe) : json_null(),
		    "the probe had not been made yet");
	return record;
}

void sy_record_complete(json_t *record, const char *reason)
{
	(void)json_object_set_new(record, "complete", json_boolean(!reason));
	(void)json_object_set_new(record, "incomplete_reason", text_or_null(reason));
	(void)json_object_set_new(record, "incomplete_of", text_or_null(reason ? "job" : NULL));
}

/* How many a list of zones or devices has, and their names. */
static int read_labels(const json_t *list, struct sy_label *labels, int most)
{
	int count = (int)json_array_size(list);

	for (int i = 0; i < count && i < most; i++) {
		const json_t *name = json_object_get(json_array_get(list, (size_t)i), "name");

		sy_label_set(labels, i, json_is_string(name) ? json_string_value(name) : "");
	}
	return count < most ? count : most;
}

void sy_record_labels(const json_t *record, struct sy_labels *labels)
{
	const json_t *energy = json_object_get(record, "energy");
	const json_t *network = json_object_get(record, "network");

	labels->zones = read_labels(json_object_get(energy, "zones"), labels->zone, SY_MAX_ZONES);
	labels->devices =
	    read_labels(json_object_get(network, "devices"), labels->device, SY_MAX_DEVICES);
}
