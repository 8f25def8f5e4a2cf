#include "sampler/totals_answer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_document.h"
#include "counters/cgroup.h"
#include "record/record.h"

#define WHY_MAX 95 /* bytes: the record has it whole */

/* From columns, and from values of the status that have no column. */
static int64_t read_total(const struct sy_status *status, enum sy_total which)
{
	bool counted = status->io_source == SY_SOURCE_BPF;

	if (which == SY_GPU_ENERGY_J)
		return status->gpu_energy_uj;
	if (which == SY_CPU_UNSEEN_S)
		return counted ? 0 : status->gap_us;
	return sy_sums_total(&status->sums, which);
}

static size_t append(char *text, size_t size, size_t used, const char *name, int64_t value,
		     bool micro)
{
	char number[40] = "null";
	int length;

	if (value != SY_UNKNOWN && micro)
		(void)snprintf(number, sizeof(number), "%lld.%06lld", (long long)value / 1000000,
			       (long long)value % 1000000);
	else if (value != SY_UNKNOWN)
		(void)snprintf(number, sizeof(number), "%lld", (long long)value);
	length =
	    snprintf(text + used, size - used, "%s\"%s\":%s", used > 1 ? "," : "", name, number);
	return used + (size_t)length;
}

static const json_t *find_member(const json_t *object, const char *section, const char *name)
{
	return json_object_get(json_object_get(object, section), name);
}

/* {"name": …} of a layer, or the kernel's release, in the shape of the record. */
static json_t *copy_member(const json_t *object, const char *name)
{
	json_t *found = json_object();

	(void)json_object_set(found, name, json_object_get(object, name));
	return found;
}

static json_t *copy_probe(const json_t *record)
{
	const json_t *probe = json_object_get(record, "probe");
	json_t *found = copy_member(probe, "node_type"), *layers = json_object();

	(void)json_object_set_new(layers, "vm",
				  copy_member(find_member(probe, "virtualization", "vm"), "name"));
	(void)json_object_set_new(
	    layers, "container",
	    copy_member(find_member(probe, "virtualization", "container"), "name"));
	(void)json_object_set_new(found, "virtualization", layers);
	(void)json_object_set_new(found, "kernel",
				  copy_member(json_object_get(probe, "kernel"), "release"));
	return found;
}

/* "Not over yet" is left out: it is no reason at the job's end. */
static json_t *copy_reasons(const json_t *record)
{
	json_t *found = json_object();

	for (int i = 0; i <= SY_TOTALS; i++) {
		const char *path = i < SY_TOTALS ? sy_total_facts[i].path : "energy.gpus.of_job";
		const char *reason = sy_json_reason(record, path);

		if (reason && strcmp(reason, SY_NOT_YET) != 0)
			(void)json_object_set_new(found, path,
						  json_sprintf("%.*s", WHY_MAX, reason));
	}
	return found;
}

void sy_answer_kind(const json_t *record, char *text, size_t size)
{
	json_t *object = json_object();
	cleanup_free char *line = NULL;
	size_t length;

	(void)json_object_set_new(object, "probe", copy_probe(record));
	(void)json_object_set_new(object, "missing", copy_reasons(record));
	line = sy_json_dump(object, JSON_COMPACT);
	json_decref(object);
	length = line ? strlen(line) : 0;
	text[0] = '\0';
	if (length >= 2 && length - 2 < size)
		(void)snprintf(text, size, "%.*s", (int)length - 2, line + 1);
}

/* As the record will say (record/completeness.c), of what is known before its end: while a step
 * runs, its reports cannot be compared with the cgroup yet. */
static const char *find_incompleteness(const struct sy_status *status)
{
	bool by_cgroup = status->cpu_source != SY_SOURCE_PROCESSES;

	if (status->io_source == SY_SOURCE_BPF)
		return status->unsettled || status->survivors ? "uncounted" : NULL;
	if (status->nothing_named)
		return NULL;
	if (sy_has_gap(status))
		return by_cgroup ? "unseen" : "uncounted";
	if (status->gap_us != SY_UNKNOWN)
		return NULL;
	return status->group_gone || !by_cgroup ? "uncounted" : NULL;
}

size_t sy_totals_json(const struct sy_answer_head *head, const struct sy_status *status, char *text,
		      size_t size)
{
	const char *memory_source = sy_source_name(status->memory_source);
	const char *incompleteness = find_incompleteness(status);
	size_t used = 1;

	text[0] = '{';
	if (head->question >= 0)
		used = append(text, size - 1, used, "question", head->question, false);
	used = append(text, size - 1, used, "start", head->start_unix_s, false);
	used = append(text, size - 1, used, "exclusive", status->exclusive, false);
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		bool exists = i != SY_GPU_ENERGY_J || status->has_gpus;

		if (sy_is_in_comment((enum sy_total)i) && exists)
			used =
			    append(text, size - 1, used, fact->name,
				   read_total(status, (enum sy_total)i), sy_is_micro(fact->unit));
	}
	if (memory_source && sy_sums_total(&status->sums, SY_MAX_MEMORY_BYTES) != SY_UNKNOWN)
		used += (size_t)snprintf(text + used, size - 1 - used, ",\"memory_source\":\"%s\"",
					 memory_source);
	if (incompleteness)
		used = append(text, size - 1, used, incompleteness, 1, false);
	if (status->other_networks)
		used = append(text, size - 1, used, "other_networks", 1, false);
	if (head->kind[0] && used + strlen(head->kind) + 2 < size)
		used += (size_t)snprintf(text + used, size - used, ",%s", head->kind);
	text[used++] = '}';
	return used;
}
