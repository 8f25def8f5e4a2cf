#include "netem/spec/text.h"

#include "netem/spec/values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *start;
	size_t used;
};

/* A part; the longest of all specifications is about 800 characters, so it fits. */
__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	int length;

	if (text->used)
		text->start[text->used++] = ',';
	va_start(args, format);
	length = vsnprintf(text->start + text->used, SY_NETEM_SIZE - text->used, format, args);
	va_end(args);
	text->used += (size_t)length;
}

static void add_delay(struct text *text, const struct sy_netem *spec)
{
	char delay[SY_UNIT_SIZE], jitter[SY_UNIT_SIZE];
	bool shaped = spec->distribution != SY_UNIFORM;

	(void)sy_format_time(spec->delay_us, delay);
	if (spec->jitter_us)
		add(text, "delay=%s~%s%s%s", delay, sy_format_time(spec->jitter_us, jitter),
		    shaped ? "/" : "", shaped ? sy_distribution_names[spec->distribution] : "");
	else
		add(text, "delay=%s", delay);
}

/* All that is not the default: tc-netem(8). */
static void add_gemodel(struct text *text, const struct sy_gemodel *model)
{
	char p[SY_UNIT_SIZE], r[SY_UNIT_SIZE], h[SY_UNIT_SIZE], k[SY_UNIT_SIZE];
	int count = 1;

	(void)sy_format_percent(model->p_ppb, p);
	(void)sy_format_percent(model->r_ppb, r);
	(void)sy_format_percent(model->one_minus_h_ppb, h);
	(void)sy_format_percent(model->one_minus_k_ppb, k);
	if (model->r_ppb != SY_WHOLE_PPB - model->p_ppb)
		count = 2;
	if (model->one_minus_h_ppb != SY_WHOLE_PPB)
		count = 3;
	if (model->one_minus_k_ppb)
		count = 4;
	add(text, "loss=gemodel:%s%s%s%s%s%s%s", p, count > 1 ? ":" : "", count > 1 ? r : "",
	    count > 2 ? ":" : "", count > 2 ? h : "", count > 3 ? ":" : "", count > 3 ? k : "");
}

static void add_percent(struct text *text, bool has, const char *name, int32_t ppb)
{
	char percent[SY_UNIT_SIZE];

	if (has)
		add(text, "%s=%s", name, sy_format_percent(ppb, percent));
}

static void add_numbers(struct text *text, const struct sy_netem *spec)
{
	char number[SY_UNIT_SIZE];

	if (spec->has_rate)
		add(text, "rate=%s", sy_format_rate(spec->rate_bit_per_s, number));
	if (spec->has_limit)
		add(text, "limit=%" PRId64, spec->limit_packets);
	if (spec->has_rto_min)
		add(text, "rto_min=%s", sy_format_time(spec->rto_min_us, number));
}

static void add_places(struct text *text, const struct sy_netem *spec)
{
	char network[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++)
		add(text, "to=%s", sy_format_network(&spec->to[i], network));
	for (int i = 0; i < spec->port_count; i++)
		add(text, "port=%d", spec->port[i]);
	if (*spec->device)
		add(text, "dev=%s", spec->device);
	if (spec->direction != SY_EGRESS) /* the default: one condition has one text */
		add(text, "direction=%s", sy_direction_names[spec->direction]);
}

size_t sy_netem_format(const struct sy_netem *spec, char *text)
{
	struct text out = {.start = text};

	*text = '\0';
	if (spec->none)
		add(&out, "none");
	if (spec->has_delay)
		add_delay(&out, spec);
	add_percent(&out, spec->has_loss, "loss", spec->loss_ppb);
	if (spec->has_gemodel)
		add_gemodel(&out, &spec->gemodel);
	add_percent(&out, spec->has_duplicate, "duplicate", spec->duplicate_ppb);
	add_percent(&out, spec->has_corrupt, "corrupt", spec->corrupt_ppb);
	add_percent(&out, spec->has_reorder, "reorder", spec->reorder_ppb);
	add_numbers(&out, spec);
	add_places(&out, spec);
	return out.used;
}

static json_t *fraction(int32_t ppb)
{
	return json_real((double)ppb / SY_WHOLE_PPB);
}

static json_t *seconds(int64_t us)
{
	return json_real((double)us / 1e6);
}

/* All of these take the value's reference, and a value of NULL. */
static void put(json_t *object, bool has, const char *name, json_t *value)
{
	if (has)
		(void)json_object_set_new(object, name, value);
	else
		json_decref(value);
}

static json_t *gemodel_json(const struct sy_gemodel *model)
{
	json_t *object = json_object();

	put(object, true, "p", fraction(model->p_ppb));
	put(object, true, "r", fraction(model->r_ppb));
	put(object, true, "one_minus_h", fraction(model->one_minus_h_ppb));
	put(object, true, "one_minus_k", fraction(model->one_minus_k_ppb));
	return object;
}

static void put_places(json_t *object, const struct sy_netem *spec)
{
	json_t *to = json_array(), *port = json_array();
	char network[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++)
		(void)json_array_append_new(to,
					    json_string(sy_format_network(&spec->to[i], network)));
	for (int i = 0; i < spec->port_count; i++)
		(void)json_array_append_new(port, json_integer(spec->port[i]));
	put(object, spec->to_count > 0, "to", to);
	put(object, spec->port_count > 0, "port", port);
	put(object, *spec->device != '\0', "device", json_string(spec->device));
	put(object, spec->direction != SY_EGRESS, "direction",
	    json_string(sy_direction_names[spec->direction]));
}

json_t *sy_netem_json(const struct sy_netem *spec)
{
	json_t *object = json_object();

	put(object, spec->has_delay, "delay_s", seconds(spec->delay_us));
	put(object, spec->jitter_us > 0, "jitter_s", seconds(spec->jitter_us));
	put(object, spec->jitter_us > 0, "distribution",
	    json_string(sy_distribution_names[spec->distribution]));
	put(object, spec->has_loss, "loss", fraction(spec->loss_ppb));
	put(object, spec->has_gemodel, "gemodel", gemodel_json(&spec->gemodel));
	put(object, spec->has_duplicate, "duplicate", fraction(spec->duplicate_ppb));
	put(object, spec->has_corrupt, "corrupt", fraction(spec->corrupt_ppb));
	put(object, spec->has_reorder, "reorder", fraction(spec->reorder_ppb));
	put(object, spec->has_rate, "rate_bit_per_s", json_integer(spec->rate_bit_per_s));
	put(object, spec->has_limit, "limit_packets", json_integer(spec->limit_packets));
	put(object, spec->has_rto_min, "rto_min_s", seconds(spec->rto_min_us));
	put_places(object, spec);
	return object;
}
