#include "sampler/answer.h"

#include <stdbool.h>
#include <stdio.h>

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
	const struct sy_sums *sums = &status->sums;
	bool counted = status->io_source == SY_SOURCE_BPF;
	int64_t unseen_us = status->unseen.known ? status->unseen.us : counted ? 0 : SY_UNKNOWN;
	size_t used = 1;

	text[0] = '{';
	if (question >= 0)
		used = append(text, size - 1, used, "question", question, false);
	used = append(text, size - 1, used, "start", start_unix_s, false);
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		int64_t value = sy_sums_total(sums, (enum sy_total)i);

		if (sy_is_in_comment((enum sy_total)i))
			used = append(text, size - 1, used, fact->name,
				      i == SY_CPU_UNSEEN_S ? unseen_us : value,
				      sy_is_micro(fact->unit));
	}
	text[used++] = '}';
	return used;
}
