#include "meters/meters.h"

#include "base/error.h"
#include "meters/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the node's energy may be made of, the best first. */
enum kind { WHOLE_NODE, PARTS, WHOLE_NODE_BY_POWER, PARTS_BY_POWER, NOTHING };

static enum kind kind_of(const struct sy_meter *meter)
{
	if (meter->domain == SY_DOMAIN_NODE)
		return meter->power ? WHOLE_NODE_BY_POWER : WHOLE_NODE;
	if (meter->domain == SY_DOMAIN_PACKAGE || meter->domain == SY_DOMAIN_DRAM)
		return meter->power ? PARTS_BY_POWER : PARTS;
	return NOTHING;
}

/* The best readable kind; without a readable meter the best existing one. */
static enum kind best_kind(const struct sy_meter *meter, int count)
{
	enum kind readable = NOTHING, any = NOTHING;

	for (int i = 0; i < count; i++) {
		enum kind kind = kind_of(&meter[i]);

		if (kind < any)
			any = kind;
		if (meter[i].readable && kind < readable)
			readable = kind;
	}
	return readable < NOTHING ? readable : any;
}

/* The reader of a domain: the first that is readable, else the first. */
static const struct sy_reader *find_reader(const struct sy_meter *meter, int count, enum kind kind,
					   enum sy_domain domain)
{
	const struct sy_reader *first = NULL;

	for (int i = 0; i < count; i++) {
		if (meter[i].domain != domain || kind_of(&meter[i]) != kind)
			continue;
		if (meter[i].readable)
			return meter[i].reader;
		if (!first)
			first = meter[i].reader;
	}
	return first;
}

static const char *parent_name(const struct sy_meter *meter, const struct sy_meter *one)
{
	return one->parent < 0 ? "" : meter[one->parent].name;
}

/* A node has one node domain, files are named by their writers, and all dies of a package may
 * report the package. */
static bool is_same_component(const struct sy_meter *a, const struct sy_meter *b)
{
	return a->reader == b->reader && a->domain == b->domain && a->unit == b->unit &&
	       (a->domain == SY_DOMAIN_NODE || a->reader == &sy_meter_file ||
		(a->per_package && b->per_package));
}

static bool is_same_object(const struct sy_meter *meter, const struct sy_meter *a,
			   const struct sy_meter *b)
{
	if (is_same_component(a, b))
		return true;
	return a->reader == b->reader && a->domain == b->domain && !strcmp(a->name, b->name) &&
	       !strcmp(parent_name(meter, a), parent_name(meter, b));
}

/* Seen through MSR and MMIO a zone counts by its MSR; of other twins the first does. */
static bool has_better_twin(const struct sy_meter *meter, int count, int i)
{
	for (int j = 0; j < count; j++) {
		bool mmio = sy_powercap_is_mmio(&meter[i]);

		if (j == i || !is_same_object(meter, &meter[i], &meter[j]))
			continue;
		if (sy_powercap_is_mmio(&meter[j]) == mmio ? j < i : mmio)
			return true;
	}
	return false;
}

bool sy_meters_choose(struct sy_meter *meter, int count)
{
	enum kind kind = best_kind(meter, count);
	bool some = false;

	for (int i = 0; i < count; i++) {
		struct sy_meter *one = &meter[i];

		one->counted = kind != NOTHING && kind_of(one) == kind &&
			       one->reader == find_reader(meter, count, kind, one->domain) &&
			       !has_better_twin(meter, count, i);
		some |= one->counted;
	}
	return some;
}

/* More than any machine has: 8 packages with 4 dies, each with 3 zones inside, seen twice. */
#define MOST 256

/* The order of preference for a domain that several readers report. */
static const struct sy_reader *const readers[] = {
    &sy_powercap, &sy_perf, &sy_cray, &sy_hwmon, &sy_nvml, &sy_amdgpu, &sy_meter_file, &sy_dcmi};

static void explain_none(struct sy_meters *meters, const char *reason)
{
	(void)snprintf(meters->none, sizeof(meters->none), "%s", reason);
}

/* If no meter is found at all, RAPL's reason is kept: most nodes would have RAPL. */
static void run_readers(struct sy_meters *meters, int root, struct sy_meter_list *found)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct sy_error err = {""};

		readers[i]->find(root, found, &err);
		if (i == 0)
			explain_none(meters, err.text);
	}
}

/* Counted meters first, then others, each in their order, until the table is full. */
static void copy_counted_first(struct sy_meters *meters, const struct sy_meter_list *found)
{
	int new_index[MOST];

	for (int i = 0; i < found->count; i++)
		new_index[i] = -1;
	for (int counted = 1; counted >= 0; counted--)
		for (int i = 0; i < found->count && meters->count < SY_MAX_ZONES; i++)
			if (found->meter[i].counted == (counted == 1)) {
				new_index[i] = meters->count;
				meters->meter[meters->count++] = found->meter[i];
			}
	for (int i = 0; i < meters->count; i++)
		if (meters->meter[i].parent >= 0)
			meters->meter[i].parent = new_index[meters->meter[i].parent];
}

static void copy_found(struct sy_meters *meters, const struct sy_meter_list *found)
{
	int counted = 0;

	for (int i = 0; i < found->count; i++)
		counted += found->meter[i].counted;
	if (found->count > SY_MAX_ZONES) {
		copy_counted_first(meters, found);
	} else {
		memcpy(meters->meter, found->meter, sizeof(*found->meter) * (size_t)found->count);
		meters->count = found->count;
	}
	if (!found->full && counted <= SY_MAX_ZONES)
		return;
	for (int i = 0; i < meters->count; i++)
		meters->meter[i].counted = false;
	explain_none(meters, "this node has more meters of energy than can be read: their sum "
			     "would lack some");
}

void sy_meters_find(struct sy_meters *meters, int root)
{
	struct sy_meter_list found = {.capacity = MOST};
	unsigned shortages = sy_get_shortages();

	*meters = (struct sy_meters){.count = 0};
	found.meter = calloc(MOST, sizeof(*found.meter));
	if (found.meter)
		run_readers(meters, root, &found);
	if (!found.meter || sy_get_shortages() != shortages) { /* the sum would lack some */
		meters->lacking = true;
		explain_none(meters, "no RAPL: /sys/class/powercap cannot be read whole: no "
				     "descriptor or no memory left");
	} else if (found.count) {
		explain_none(meters, sy_meters_choose(found.meter, found.count)
					 ? ""
					 : "no zone of RAPL is a package or dram");
		copy_found(meters, &found);
		meters->lacking = found.full || found.count > SY_MAX_ZONES;
	}
	free(found.meter);
}

void sy_meters_open(struct sy_meters *meters, int root)
{
	for (int i = 0; i < meters->count; i++) {
		struct sy_meter *meter = &meters->meter[i];
		struct sy_error err = {""};

		if (meter->power)
			sy_energy_init_power(&meters->energy[i], meter->period_us, meter->mean_us);
		else
			sy_energy_init(&meters->energy[i], meter->range_uj);
		if (!meter->readable)
			sy_energy_invalidate(&meters->energy[i], meter->reason);
		else if (!meter->period_us && meter->reader->open(root, meter, &err) < 0)
			sy_energy_invalidate(&meters->energy[i], err.text);
	}
}

static void read_one(struct sy_meter *meter, struct sy_energy *energy, int64_t now_us)
{
	const char *reason = "it could no longer be read";
	int64_t value;

	if (!energy->valid)
		return;
	value = meter->reader->read(meter, &reason);
	if (value < 0)
		sy_energy_invalidate(energy, reason);
	else
		sy_energy_add(energy, now_us, value);
}

/* Joules so far in µJ, or SY_UNKNOWN. */
static int64_t read_value(struct sy_meters *meters, int i, int64_t now_us)
{
	struct sy_meter *meter = &meters->meter[i];
	struct sy_energy *energy = &meters->energy[i];

	if (!meter->period_us)
		read_one(meter, energy, now_us);
	else if (meters->slow && energy->valid)
		sy_slow_read(meters->slow, i, energy);
	if (!energy->valid || !energy->started)
		return SY_UNKNOWN;
	if (meter->period_us && now_us - energy->last_us > sy_meter_stale_us(meter))
		return SY_UNKNOWN;
	return energy->sum_uj;
}

void sy_meters_read(struct sy_meters *meters, int64_t now_us, struct sy_line *line)
{
	bool counted = false, known = true;
	int64_t sum = 0;

	for (int i = 0; i < meters->count; i++) {
		int64_t value = read_value(meters, i, now_us);

		line->cell[SY_ZONE + i] = value;
		if (!meters->meter[i].counted)
			continue;
		counted = true;
		known &= value != SY_UNKNOWN;
		known &= !__builtin_add_overflow(sum, value == SY_UNKNOWN ? 0 : value, &sum);
	}
	if (counted && known)
		line->cell[SY_ENERGY] = sum;
}

/* Why a meter has no value; "": it has one. */
static const char *value_reason(const struct sy_meters *meters, int i, int64_t now_us)
{
	const struct sy_energy *energy = &meters->energy[i];
	const struct sy_meter *meter = &meters->meter[i];

	if (!energy->valid)
		return energy->reason;
	if (!energy->started)
		return "it had not answered yet: it is slower than the job was long";
	if (meter->period_us && now_us - energy->last_us > sy_meter_stale_us(meter))
		return "it no longer answers";
	return "";
}

bool sy_meters_follow_cpu(const struct sy_meters *meters)
{
	bool some = false;

	for (int i = 0; i < meters->count; i++) {
		const struct sy_meter *meter = &meters->meter[i];

		if (!meter->counted)
			continue;
		some = true;
		if (meter->period_us || meter->power || meter->domain == SY_DOMAIN_NODE)
			return false;
	}
	return some;
}

void sy_meters_report(const struct sy_meters *meters, int64_t now_us, bool end,
		      struct sy_meter_status *status, char (*reason)[SY_REASON_SIZE])
{
	for (int i = 0; i < meters->count; i++) {
		const struct sy_energy *energy = &meters->energy[i];

		status[i] = (struct sy_meter_status){
		    energy->wraps, energy->last_us - energy->first_us, energy->power};
		if (end && !*reason[i])
			(void)snprintf(reason[i], SY_REASON_SIZE, "%s",
				       value_reason(meters, i, now_us));
	}
}

int64_t sy_meters_max_period_us(const struct sy_meters *meters)
{
	int64_t shortest = 0;

	for (int i = 0; i < meters->count; i++) {
		int64_t gap = sy_energy_max_gap_us(meters->energy[i].range_uj) / 4;

		if (gap && meters->energy[i].valid && (!shortest || gap < shortest))
			shortest = gap;
	}
	return shortest && shortest < 100000 ? 100000 : shortest;
}
