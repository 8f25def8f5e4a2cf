/* What tasks have said of their GPUs, one message a line; the first line is the node: a letter for
 * each of its meters, and "x" where nobody else was on it. Whose joules are told must hold
 * together. */
#include "fuzz.h"

#include "meters/readers.h"
#include "record/record.h"
#include "record/message_grammar.h"

#define MOST 8

static struct sy_meters meters;

/* n: NVIDIA's in both orders alike; m: not; a: AMD's; u: a GPU of whom nothing is told. */
static void add_meter(char kind)
{
	struct sy_meter *meter = &meters.meter[meters.count];
	int number = meters.count;

	*meter = (struct sy_meter){.reader = kind == 'a' ? &sy_amdgpu : &sy_nvml,
				   .domain = SY_DOMAIN_ACCELERATOR,
				   .unit = kind == 'm' ? MOST - number : number};
	(void)snprintf(meter->path, sizeof(meter->path), "/dev/gpu%d", number);
	if (kind == 'p')
		meter->domain = SY_DOMAIN_PACKAGE, meter->reader = &sy_powercap;
	if (kind == 'n' || kind == 'm') {
		(void)snprintf(meter->identity, sizeof(meter->identity), "GPU-%d", number);
		(void)snprintf(meter->dev_name, sizeof(meter->dev_name), "nvidia%d", meter->unit);
	} else if (kind == 'a') {
		(void)snprintf(meter->dev_name, sizeof(meter->dev_name), "dri/renderD%d",
			       128 + number);
	}
	meters.count++;
}

/* Joules of each are a power of two, so that a sum tells whose it is of; NULL: not known. */
static json_t *new_record(const char *node)
{
	json_t *record = json_pack("{s{}s{ss}s{s[]}}", "missing", "job", "scheduler", "slurm",
				   "energy", "zones");
	json_t *zones = json_object_get(json_object_get(record, "energy"), "zones");

	meters = (struct sy_meters){.count = 0};
	for (const char *at = node; *at && meters.count < MOST; at++) {
		if (*at == 'x')
			(void)json_object_set_new(json_object_get(record, "job"), "exclusive",
						  json_true());
		meters.lacking |= *at == 'l';
		if (!strchr("nmaupl", *at) || *at == 'l')
			continue;
		add_meter(*at);
		(void)json_array_append_new(
		    zones, json_pack("{sf}", "energy_j", (double)(1 << (meters.count - 1))));
	}
	return record;
}

static void hear(char *lines, const struct sy_job_notes *told)
{
	char *next;

	for (; *lines; lines = next) {
		struct sy_message message;

		next = first_line(lines);
		if (sy_message_parse(lines, &message, NULL) == 0 && message.word == SY_WORD_GPUS)
			sy_message_apply(&message, told);
	}
}

static bool has_reason(const json_t *record, const char *path)
{
	const json_t *missing = json_object_get(record, "missing");
	const char *why = json_string_value(json_object_get(missing, path));

	return why && *why;
}

static void check(const json_t *record)
{
	const json_t *energy = json_object_get(record, "energy"), *zone;
	const json_t *zones = json_object_get(energy, "zones");
	const json_t *gpus = json_object_get(energy, "gpus");
	const json_t *of_job = json_object_get(gpus, "of_job");
	const json_t *sum = json_object_get(energy, "gpu_energy_j");
	int own = 0;
	double own_j = 0;
	size_t i;

	json_array_foreach(zones, i, zone)
	{
		const json_t *one = json_object_get(zone, "of_job");

		must(!one || json_is_boolean(one) || json_is_null(one));
		must(!one || json_is_null(one) == json_is_null(of_job));
		own += json_is_true(one);
		own_j +=
		    json_is_true(one) ? json_number_value(json_object_get(zone, "energy_j")) : 0;
	}
	must(json_is_null(of_job) ? has_reason(record, "energy.gpus.of_job")
				  : json_integer_value(of_job) == own);
	must(json_is_null(of_job) == json_is_null(sum));
	must(json_is_null(sum) ? has_reason(record, "energy.gpu_energy_j")
			       : json_number_value(sum) == own_j);
	must(json_is_null(of_job) == json_is_null(json_object_get(gpus, "source")));
}

/* The answer to `totals` and the record say the same. */
static void check_answer(const json_t *record, const struct sy_job_notes *told)
{
	const json_t *sum = json_object_get(json_object_get(record, "energy"), "gpu_energy_j");
	int64_t zone_uj[SY_MAX_ZONES];
	int64_t answer_uj;

	for (int i = 0; i < meters.count; i++)
		zone_uj[i] = 1000000LL << i;
	answer_uj = sy_gpu_energy_uj(&meters, told, zone_uj);
	must(json_is_null(sum) ? answer_uj == SY_UNKNOWN
			       : (double)answer_uj == json_number_value(sum) * 1e6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *node = text_of(data, size), *lines = first_line(node);
	json_t *record = new_record(node);
	struct sy_job_notes told = {json_incref(json_object_get(record, "job")), json_object(),
				    json_object()};

	hear(lines, &told);
	sy_record_gpus(record, &meters, &told);
	sy_record_gpu_energy(record);
	check(record);
	check_answer(record, &told);
	json_decref(record);
	json_decref(told.job);
	json_decref(told.tags);
	json_decref(told.conditions);
	free(node);
	return 0;
}
