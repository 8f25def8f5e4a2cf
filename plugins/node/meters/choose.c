#include "meters/choose.h"

#include "meters/powercap.h"
#include "meters/meter_file.h"

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

/* The best that can be read; where none can, the best that is there. */
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

/* By whom a domain is told: the first that can be read, else the first. */
static const struct sy_reader *teller(const struct sy_meter *meter, int count, enum kind kind,
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

/* There is one node; files are named by who writes them; and the dies of a package may all tell of
 * the package. */
static bool same_part(const struct sy_meter *a, const struct sy_meter *b)
{
	return a->reader == b->reader && a->domain == b->domain && a->unit == b->unit &&
	       (a->domain == SY_DOMAIN_NODE || a->reader == &sy_meter_file ||
		(a->per_package && b->per_package));
}

static bool same_thing(const struct sy_meter *meter, const struct sy_meter *a,
		       const struct sy_meter *b)
{
	if (same_part(a, b))
		return true;
	return a->reader == b->reader && a->domain == b->domain && !strcmp(a->name, b->name) &&
	       !strcmp(parent_name(meter, a), parent_name(meter, b));
}

/* Seen through MSR and MMIO a zone counts by its MSR; of other twins the first does. */
static bool has_better_twin(const struct sy_meter *meter, int count, int i)
{
	for (int j = 0; j < count; j++) {
		bool mmio = sy_powercap_is_mmio(&meter[i]);

		if (j == i || !same_thing(meter, &meter[i], &meter[j]))
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
			       one->reader == teller(meter, count, kind, one->domain) &&
			       !has_better_twin(meter, count, i);
		some |= one->counted;
	}
	return some;
}
