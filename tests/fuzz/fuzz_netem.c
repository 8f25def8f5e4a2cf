/* The netem specification: what is taken can be said again, and is then the same. */
#include "fuzz.h"

#include "netem/spec/spec.h"
#include "netem/spec/values.h"

static void say_again(const struct sy_netem *spec)
{
	char first[SY_NETEM_SIZE], second[SY_NETEM_SIZE];
	struct sy_netem again;
	struct sy_error err;
	json_t *json = sy_netem_json(spec);

	must(json_is_object(json));
	json_decref(json);
	must(sy_netem_format(spec, first) == strlen(first) && is_printable(first));
	must(sy_netem_parse(first, &again, &err) == 0);
	must(memcmp(spec, &again, sizeof(again)) == 0);
	(void)sy_netem_format(&again, second);
	must(strcmp(first, second) == 0);
}

/* One value of a kind, and its own way back. */
static void read_value(const char *text)
{
	struct sy_network network, same;
	char again[SY_UNIT_SIZE];
	struct sy_error err;
	int64_t value, back;
	int32_t ppb, ppb_back;

	if (sy_parse_time(text, SY_DELAY_MAX_US, &value, &err) == 0)
		must(value >= 0 && value <= SY_DELAY_MAX_US &&
		     !sy_parse_time(sy_format_time(value, again), SY_DELAY_MAX_US, &back, &err) &&
		     value == back);
	if (sy_parse_rate(text, &value, &err) == 0)
		must(value > 0 && value <= SY_RATE_MAX_BIT &&
		     !sy_parse_rate(sy_format_rate(value, again), &back, &err) && value == back);
	if (sy_parse_percent(text, &ppb, &err) == 0)
		must(ppb >= 0 && ppb <= SY_WHOLE_PPB &&
		     !sy_parse_percent(sy_format_percent(ppb, again), &ppb_back, &err) &&
		     ppb == ppb_back);
	if (sy_parse_network(text, &network, &err) == 0)
		must(!sy_parse_network(sy_format_network(&network, again), &same, &err) &&
		     sy_network_contains(&network, &same) && sy_network_contains(&same, &network));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	struct sy_error err = {0};
	struct sy_netem spec;

	if (sy_netem_parse(text, &spec, &err) == 0)
		say_again(&spec);
	else
		must_say_why(&err);
	read_value(text);
	free(text);
	return 0;
}
