#include "sampler/answer.h"

#include <stdbool.h>
#include <stdio.h>

/* Of columns, and what is known beside them. */
static int64_t value_of(const struct sy_status *status, enum sy_total which)
{
	bool counted = status->io_source == SY_SOURCE_BPF;

	if (which == SY_GPU_ENERGY_J)
		return status->gpu_energy_uj;
	if (which == SY_CPU_UNSEEN_S)
		return status->unseen.known ? status->unseen.us : counted ? 0 : SY_UNKNOWN;
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

size_t sy_totals_json(int64_t question, int64_t start_unix_s, const struct sy_status *status,
		      char *text, size_t size)
{
	size_t used = 1;

	text[0] = '{';
	if (question >= 0)
		used = append(text, size - 1, used, "question", question, false);
	used = append(text, size - 1, used, "start", start_unix_s, false);
	used = append(text, size - 1, used, "exclusive", status->exclusive, false);
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		bool is_there = i != SY_GPU_ENERGY_J || status->has_gpus;

		if (sy_is_in_comment((enum sy_total)i) && is_there)
			used = append(text, size - 1, used, fact->name,
				      value_of(status, (enum sy_total)i), sy_is_micro(fact->unit));
	}
	if (status->other_networks)
		used = append(text, size - 1, used, "other_networks", 1, false);
	text[used++] = '}';
	return used;
}
