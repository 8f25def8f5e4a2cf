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

static void write_delay(struct text *text, const struct sy_netem *spec)
{
	char delay[SY_UNIT_SIZE], jitter[SY_UNIT_SIZE];
	bool shaped = spec->distribution != SY_UNIFORM;

	if (!spec->has_delay)
		return;
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

static void write_loss(struct text *text, const struct sy_netem *spec)
{
	char percent[SY_UNIT_SIZE];

	if (spec->has_gemodel)
		add_gemodel(text, &spec->gemodel);
	else if (spec->has_loss)
		add(text, "loss=%s", sy_format_percent(spec->loss_ppb, percent));
}

static void write_to(struct text *text, const struct sy_netem *spec)
{
	char network[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++)
		add(text, "to=%s", sy_format_network(&spec->to[i], network));
}

static void write_port(struct text *text, const struct sy_netem *spec)
{
	for (int i = 0; i < spec->port_count; i++)
		add(text, "port=%d", spec->port[i]);
}

static void write_device(struct text *text, const struct sy_netem *spec)
{
	if (*spec->device)
		add(text, "dev=%s", spec->device);
}

static void write_direction(struct text *text, const struct sy_netem *spec)
{
	if (spec->direction != SY_EGRESS) /* the default: one condition has one text */
		add(text, "direction=%s", sy_direction_names[spec->direction]);
}

#define DEFINE_OWN(id, key, kind)
#define DEFINE_PLAIN(id, key, kind)                                                                \
	static void write_##id(struct text *text, const struct sy_netem *spec)                     \
	{                                                                                          \
		char value[SY_UNIT_SIZE];                                                          \
                                                                                                   \
		if (spec->has_##id)                                                                \
			add(text, "%s=%s", key,                                                    \
			    sy_format_kind(SY_KIND_##kind, spec->SY_FIELD_##kind(id), value));     \
	}
#define KEY(id, key, role, kind, grammar, ...) DEFINE_##grammar(id, key, kind)
#include "facts/netem_keys.def"

size_t sy_netem_format(const struct sy_netem *spec, char *text)
{
	struct text out = {.start = text};

	*text = '\0';
	if (spec->none)
		add(&out, "none");
#define KEY(id, ...) write_##id(&out, spec);
#include "facts/netem_keys.def"
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

/* Each: NULL when it was not asked for. */
static json_t *distribution_json(const struct sy_netem *spec)
{
	return spec->jitter_us ? json_string(sy_distribution_names[spec->distribution]) : NULL;
}

static json_t *gemodel_json(const struct sy_netem *spec)
{
	const struct sy_gemodel *model = &spec->gemodel;

	return spec->has_gemodel ? json_pack("{s:o, s:o, s:o, s:o}", "p", fraction(model->p_ppb),
					     "r", fraction(model->r_ppb), "one_minus_h",
					     fraction(model->one_minus_h_ppb), "one_minus_k",
					     fraction(model->one_minus_k_ppb))
				 : NULL;
}

static json_t *to_json(const struct sy_netem *spec)
{
	json_t *to = spec->to_count ? json_array() : NULL;
	char network[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++)
		(void)json_array_append_new(to,
					    json_string(sy_format_network(&spec->to[i], network)));
	return to;
}

static json_t *port_json(const struct sy_netem *spec)
{
	json_t *port = spec->port_count ? json_array() : NULL;

	for (int i = 0; i < spec->port_count; i++)
		(void)json_array_append_new(port, json_integer(spec->port[i]));
	return port;
}

static json_t *device_json(const struct sy_netem *spec)
{
	return *spec->device ? json_string(spec->device) : NULL;
}

static json_t *direction_json(const struct sy_netem *spec)
{
	return spec->direction != SY_EGRESS ? json_string(sy_direction_names[spec->direction])
					    : NULL;
}

#define NUMBER(spec, id, role, make, field)                                                        \
	(SY_ASKED_##role(spec, id) || (spec)->field ? make((spec)->field) : NULL)
#define JSON_TIME(spec, id, role)     NUMBER(spec, id, role, seconds, SY_FIELD_TIME(id))
#define JSON_WHOLE_MS(spec, id, role) NUMBER(spec, id, role, seconds, SY_FIELD_WHOLE_MS(id))
#define JSON_PERCENT(spec, id, role)  NUMBER(spec, id, role, fraction, SY_FIELD_PERCENT(id))
#define JSON_RATE(spec, id, role)     NUMBER(spec, id, role, json_integer, SY_FIELD_RATE(id))
#define JSON_COUNT(spec, id, role)    NUMBER(spec, id, role, json_integer, SY_FIELD_COUNT(id))
#define JSON_OWN(spec, id, role)      id##_json(spec)

/* Takes the value's reference. */
static void put(json_t *object, const char *name, json_t *value)
{
	if (value)
		(void)json_object_set_new(object, name, value);
}

json_t *sy_netem_json(const struct sy_netem *spec)
{
	json_t *object = json_object();

#define VALUE(id, key, role, kind, grammar, name, ...)                                             \
	put(object, name, JSON_##kind(spec, id, role));
#include "facts/netem_keys.def"
	return object;
}
