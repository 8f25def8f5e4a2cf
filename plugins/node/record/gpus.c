/* Which of a node's accelerators are the job's, and the joules of those.
 *
 * Meters know no jobs. Tasks report which devices the scheduler has allocated to them, and which
 * the kernel lets them open (slurm/allocation.h); where neither is sure, it is not known. */
#include "record/record.h"

#include "base/json_document.h"
#include "meters/readers.h"

#include <stdio.h>
#include <string.h>

#define NONE_THERE "no meter of an accelerator is there"
#define LACKING	   "not every meter of the node was found: there may be more accelerators"

/* The node's accelerators, each once. */
struct gpus {
	const struct sy_meter *meter[SY_MAX_ZONES];
	int zone[SY_MAX_ZONES]; /* its place among all meters */
	bool own[SY_MAX_ZONES];
	int count;
	bool known;   /* `own` is known */
	bool lacking; /* there may be more */
	const char *basis;
	const char *reason; /* what makes it unknowable */
};

/* The report of one task: lists with commas, "-" for none. */
struct word {
	char listed[SY_GPUS_SIZE], open[SY_GPUS_SIZE], denied[SY_GPUS_SIZE];
};

static bool is_driver(const struct sy_meter *meter)
{
	return meter->reader == &sy_nvml || meter->reader == &sy_amdgpu;
}

/* A GPU is counted once, by its own driver; other readers (Cray's, hwmon) show the same GPUs
 * again. */
static void find_gpus(struct gpus *gpus, const struct sy_meters *meters)
{
	const struct sy_reader *other = NULL;
	bool drivers = false;

	for (int i = 0; i < meters->count; i++)
		drivers |= meters->meter[i].domain == SY_DOMAIN_ACCELERATOR &&
			   is_driver(&meters->meter[i]);
	for (int i = 0; i < meters->count; i++) {
		const struct sy_meter *meter = &meters->meter[i];

		if (meter->domain != SY_DOMAIN_ACCELERATOR)
			continue;
		if (!drivers && !other)
			other = meter->reader;
		if (drivers ? !is_driver(meter) : meter->reader != other)
			continue;
		gpus->zone[gpus->count] = i;
		gpus->meter[gpus->count++] = meter;
	}
}

/* True when a comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; length && (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static int count_names(const char *list)
{
	int count = 1;

	for (const char *at = list; *at; at++)
		count += *at == ',';
	return strcmp(list, "-") ? count : 0;
}

/* How many GPUs the task may open; -1: not reported for each. */
static int count_openable(const struct gpus *gpus, const struct word *word, bool *open)
{
	int count = 0;

	for (int i = 0; i < gpus->count; i++) {
		open[i] = has_word(word->open, gpus->meter[i]->dev_name);
		if (!open[i] && !has_word(word->denied, gpus->meter[i]->dev_name))
			return -1;
		count += open[i];
	}
	return count;
}

/* Slurm numbers GPUs as gres.conf has their files, sorted, or (AutoDetect) by their place on the
 * PCI bus, which is CUDA's order, too: only where both are one is it known which is meant. */
static bool is_one_order(const struct gpus *gpus)
{
	for (int i = 0; i < gpus->count; i++) {
		int before = 0;

		for (int j = 0; j < gpus->count; j++)
			before += strcmp(gpus->meter[j]->path, gpus->meter[i]->path) < 0;
		if (gpus->meter[i]->reader != &sy_nvml || gpus->meter[i]->unit != before)
			return false;
	}
	return true;
}

static bool is_of_uuids(const char *list)
{
	return !strncmp(list, "GPU-", 4);
}

/* Is a GPU one of those that are listed, by number or by UUID? */
static bool is_listed(const struct sy_meter *meter, const char *list)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", meter->unit);
	return has_word(list, is_of_uuids(list) ? meter->identity : number);
}

static const char *add_listed(struct gpus *gpus, const struct word *word, const bool *open)
{
	bool listed[SY_MAX_ZONES];
	int count = 0;

	if (!is_of_uuids(word->listed) && !is_one_order(gpus))
		return "the scheduler numbers GPUs in an order that is not known: by device file "
		       "and by place on the bus they are not the same here";
	for (int i = 0; i < gpus->count; i++) {
		listed[i] = is_listed(gpus->meter[i], word->listed);
		count += listed[i];
		if (listed[i] && open && !open[i])
			return "a GPU that the scheduler has named may not be opened by the job";
	}
	if (count != count_names(word->listed))
		return "the scheduler has named a GPU that no meter knows";
	for (int i = 0; i < gpus->count; i++)
		gpus->own[i] |= listed[i];
	gpus->known = true;
	gpus->basis = is_of_uuids(word->listed) ? "uuid" : "index";
	return NULL;
}

static const char *add_opened(struct gpus *gpus, const bool *open)
{
	for (int i = 0; i < gpus->count; i++)
		gpus->own[i] |= open[i];
	gpus->known = true;
	gpus->basis = "device";
	return NULL;
}

/* NULL, or why the task's GPUs are unknown. Device files that the kernel lets a task open
 * precede numbers: a device file identifies its device in any order. */
static const char *add_task(struct gpus *gpus, const struct word *word)
{
	bool open[SY_MAX_ZONES];
	int can = count_openable(gpus, word, open), listed = count_names(word->listed);

	if (!strcmp(word->listed, "shared"))
		return "the job has a part of a GPU (MIG, shards or MPS), and meters measure "
		       "whole ones";
	if (can >= 0 && can == listed)
		return add_opened(gpus, open);
	if (listed)
		return add_listed(gpus, word, can >= 0 ? open : NULL);
	return NULL; /* named none, and yet all are open to it: no information */
}

static void read_task_reports(struct gpus *gpus, const json_t *tasks)
{
	const json_t *text;
	size_t i;

	json_array_foreach(tasks, i, text)
	{
		struct word word;
		const char *reason;

		if (sscanf(json_string_value(text), "%1023s %1023s %1023s", word.listed, word.open,
			   word.denied) != 3)
			continue;
		reason = add_task(gpus, &word);
		if (reason && !gpus->reason)
			gpus->reason = reason;
	}
}

/* Without reports all GPUs are the job's where the job was alone on the node. */
static void decide_ownership(struct gpus *gpus, const json_t *job)
{
	const char *scheduler = json_string_value(json_object_get(job, "scheduler"));
	bool alone = json_is_true(json_object_get(job, "exclusive"));

	if (gpus->known && !gpus->reason)
		return;
	gpus->known = alone || !scheduler || !strcmp(scheduler, "none");
	if (gpus->known) {
		gpus->basis = alone ? "exclusive" : "no scheduler";
		for (int i = 0; i < gpus->count; i++)
			gpus->own[i] = true;
	} else if (!gpus->reason) {
		gpus->reason = "it was not reported which accelerators of the node are the job's";
	}
}

static struct gpus find_own_gpus(const struct sy_meters *meters, const struct sy_job_notes *notes)
{
	struct gpus gpus = {.lacking = meters->lacking};

	find_gpus(&gpus, meters);
	if (gpus.lacking) {
		gpus.reason = LACKING;
	} else if (!gpus.count) {
		gpus.reason = NONE_THERE;
	} else {
		read_task_reports(&gpus, json_object_get(notes->conditions, "gpus"));
		decide_ownership(&gpus, notes->job);
	}
	return gpus;
}

void sy_record_gpus(json_t *record, const struct sy_meters *meters,
		    const struct sy_job_notes *notes)
{
	struct gpus gpus = find_own_gpus(meters, notes);
	int own = 0;
	char path[64];

	for (int i = 0; i < gpus.count; i++) {
		(void)snprintf(path, sizeof(path), "energy.zones.%d.of_job", gpus.zone[i]);
		sy_json_put(record, path, gpus.known ? json_boolean(gpus.own[i]) : json_null(),
			    gpus.reason);
		own += gpus.own[i];
	}
	sy_json_put(record, "energy.gpus.of_node",
		    gpus.lacking ? json_null() : json_integer(gpus.count), LACKING);
	sy_json_put(record, "energy.gpus.of_job", gpus.known ? json_integer(own) : json_null(),
		    gpus.reason);
	sy_json_put(record, "energy.gpus.source",
		    gpus.known ? json_string(gpus.basis) : json_null(), gpus.reason);
}

bool sy_has_gpus(const struct sy_meters *meters)
{
	for (int i = 0; i < meters->count; i++)
		if (meters->meter[i].domain == SY_DOMAIN_ACCELERATOR)
			return true;
	return meters->lacking;
}

int64_t sy_gpu_energy_uj(const struct sy_meters *meters, const struct sy_job_notes *notes,
			 const int64_t zone_uj[])
{
	struct gpus gpus = find_own_gpus(meters, notes);
	int64_t sum_uj = 0;

	if (!gpus.known)
		return SY_UNKNOWN;
	for (int i = 0; i < gpus.count; i++) {
		if (gpus.own[i] && zone_uj[gpus.zone[i]] == SY_UNKNOWN)
			return SY_UNKNOWN;
		sum_uj += gpus.own[i] ? zone_uj[gpus.zone[i]] : 0;
	}
	return sum_uj;
}

static const char *read_reason(const json_t *record, const char *path)
{
	const char *reason = sy_json_reason(record, path);

	return reason ? reason : "not known";
}

/* Why no sum is known: the zone's reason. */
static const char *read_zone_reason(const json_t *record, size_t zone, const char *field)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "energy.zones.%zu.%s", zone, field);
	return read_reason(record, path);
}

void sy_record_gpu_energy(json_t *record)
{
	const json_t *zones = json_object_get(json_object_get(record, "energy"), "zones");
	const char *reason = NULL;
	const json_t *zone;
	double sum_j = 0;
	bool some = false;
	size_t i;

	json_array_foreach(zones, i, zone)
	{
		const json_t *of_job = json_object_get(zone, "of_job");
		const json_t *energy = json_object_get(zone, "energy_j");

		some |= of_job != NULL;
		if (json_is_null(of_job) && !reason)
			reason = read_zone_reason(record, i, "of_job");
		else if (json_is_true(of_job) && !json_is_number(energy) && !reason)
			reason = read_zone_reason(record, i, "energy_j");
		else if (json_is_true(of_job))
			sum_j += json_number_value(energy);
	}
	if (!some)
		reason = read_reason(record, "energy.gpus.of_job");
	sy_json_put(record, "energy.gpu_energy_j", reason ? json_null() : json_real(sum_j), reason);
}
