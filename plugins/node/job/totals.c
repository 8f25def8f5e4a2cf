#include "job/totals.h"

#include <jansson.h>

/* A double tells each whole number up to 2^53, which is 9 PB. */
bool sy_is_countable(double value)
{
	return value >= 0 && value <= 9007199254740992.0;
}

static enum sy_exclusive exclusive_from(const json_t *told)
{
	if (!json_is_integer(told))
		return SY_NOT_SAID;
	return json_integer_value(told) == 1 ? SY_ALONE : SY_SHARED;
}

bool sy_totals_from_json(struct sy_totals *totals, const char *text)
{
	json_t *document = json_loads(text, 0, NULL);
	bool is_object = json_is_object(document);

	*totals = (struct sy_totals){0};
	for (int i = 0; is_object && i < SY_TOTALS; i++) {
		const json_t *value = json_object_get(document, sy_total_facts[i].name);

		totals->value[i] = json_number_value(value);
		totals->known[i] = json_is_number(value) && sy_is_countable(totals->value[i]);
	}
	totals->no_gpus = !json_object_get(document, sy_total_facts[SY_GPU_ENERGY_J].name);
	totals->exclusive = exclusive_from(json_object_get(document, "exclusive"));
	totals->other_networks = json_object_get(document, "other_networks") != NULL;
	totals->start = (time_t)json_integer_value(json_object_get(document, "start"));
	json_decref(document);
	return is_object;
}
