/* Totals of the sampler's answer: a number that is known is one that can have been counted;
 * AdminComment with them stays JSON, and short. */
#include "fuzz.h"

#include <jansson.h>
#include <math.h>

#include "job/comment.h"

static void must_be_countable(const struct sy_totals *totals)
{
	for (int i = 0; i < SY_TOTALS; i++)
		must(!totals->known[i] || (isfinite(totals->value[i]) && totals->value[i] >= 0 &&
					   totals->value[i] < 9.3e18 * 4));
}

static void must_be_json(char *text)
{
	json_t *read = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	must(json_is_object(read) && strlen(text) <= SY_COMMENT_MAX && !strchr(text, '\n'));
	for (int i = 0; i < SY_TOTALS; i++) {
		const json_t *value = json_object_get(read, sy_total_facts[i].name);

		must(!value || json_is_null(value) || json_number_value(value) >= 0);
	}
	json_decref(read);
	free(text);
}

static void say(const struct sy_totals *totals, const char *text)
{
	struct sy_tags tags = {0};
	struct sy_comment comment = {.tags = &tags, .nodes = 2, .totals = totals, .netem = "none"};

	sy_node_kind_from_record(&comment.kind, text);
	must_be_json(sy_comment_text(&comment));
	must_be_json(sy_comment_short(&comment));
}

/* An answer, which has the node's kind, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	struct sy_totals totals;
	bool is_answer = sy_totals_from_json(&totals, text);

	must_be_countable(&totals);
	totals.exclusive = SY_ALONE;
	say(is_answer ? &totals : NULL, text);
	free(text);
	return 0;
}
