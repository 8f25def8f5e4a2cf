#include "netem/spec/spec.h"

#include "netem/spec/compound_values.h"
#include "netem/spec/values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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
	char delay[SY_UNIT_SIZE], jitter[SY_UNIT_SIZE], shape[SY_UNIT_SIZE] = "";

	if (!spec->has_delay)
		return;
	(void)sy_format_time(spec->delay_us, delay);
	if (spec->distribution == SY_TABLE)
		(void)snprintf(shape, sizeof(shape), "/table:%s", spec->table);
	else if (spec->distribution != SY_UNIFORM)
		(void)snprintf(shape, sizeof(shape), "/%s",
			       sy_distribution_names[spec->distribution]);
	if (spec->jitter_us)
		add(text, "delay=%s~%s%s", delay, sy_format_time(spec->jitter_us, jitter), shape);
	else
		add(text, "delay=%s", delay);
}

static void write_loss(struct text *text, const struct sy_netem *spec)
{
	char value[SY_MODEL_SIZE];

	if (spec->has_gemodel)
		add(text, "loss=gemodel:%s", sy_format_gemodel(&spec->gemodel, value));
	else if (spec->has_state)
		add(text, "loss=state:%s", sy_format_loss_state(&spec->state, value));
	else if (spec->has_loss)
		add(text, "loss=%s", sy_format_percent(spec->loss_ppb, value));
}

static void write_ecn(struct text *text, const struct sy_netem *spec)
{
	if (spec->has_ecn)
		add(text, "ecn=yes");
}

/* An overhead of 0 stays: it has packets made one by one, as the others have. */
static void write_rate(struct text *text, const struct sy_netem *spec)
{
	char rate[SY_UNIT_SIZE], overhead[SY_MODEL_SIZE];

	if (spec->has_overhead)
		add(text, "rate=%s:%s", sy_format_rate(spec->rate_bit_per_s, rate),
		    sy_format_overhead(&spec->overhead, overhead));
	else if (spec->has_rate)
		add(text, "rate=%s", sy_format_rate(spec->rate_bit_per_s, rate));
}

static void write_slot(struct text *text, const struct sy_netem *spec)
{
	char slot[SY_MODEL_SIZE];

	if (spec->has_slot)
		add(text, "slot=%s", sy_format_slot(&spec->slot, slot));
}

static void write_trace(struct text *text, const struct sy_netem *spec)
{
	if (spec->has_trace)
		add(text, "trace=%s%s", spec->trace, spec->trace_repeats ? ":repeat" : "");
}

static void write_sites(struct text *text, const struct sy_netem *spec)
{
	if (spec->has_sites)
		add(text, "sites=%s", spec->sites);
}

static void write_seed(struct text *text, const struct sy_netem *spec)
{
	if (spec->has_seed)
		add(text, "seed=%" PRId64, spec->seed);
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

/* Each: NULL when it was not requested. */
static json_t *distribution_json(const struct sy_netem *spec)
{
	if (spec->distribution == SY_TABLE)
		return json_sprintf("table:%s", spec->table);
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

static json_t *state_json(const struct sy_netem *spec)
{
	const struct sy_loss_state *state = &spec->state;

	return spec->has_state
		   ? json_pack("{s:o, s:o, s:o, s:o, s:o}", "p13", fraction(state->p13_ppb), "p31",
			       fraction(state->p31_ppb), "p32", fraction(state->p32_ppb), "p23",
			       fraction(state->p23_ppb), "p14", fraction(state->p14_ppb))
		   : NULL;
}

static json_t *ecn_json(const struct sy_netem *spec)
{
	return spec->has_ecn ? json_true() : NULL;
}

static json_t *overhead_json(const struct sy_netem *spec)
{
	const struct sy_rate_overhead *overhead = &spec->overhead;

	return spec->has_overhead
		   ? json_pack("{s:i, s:i, s:i}", "packet_bytes", overhead->packet_bytes,
			       "cell_bytes", overhead->cell_bytes, "cell_overhead_bytes",
			       overhead->cell_overhead_bytes)
		   : NULL;
}

static json_t *slot_json(const struct sy_netem *spec)
{
	const struct sy_slot *slot = &spec->slot;
	json_t *json;

	if (!spec->has_slot)
		return NULL;
	json = json_pack("{s:o, s:o, s:i, s:i}", "min_s", seconds(slot->min_us), "max_s",
			 seconds(slot->max_us), "packets", slot->packets, "bytes", slot->bytes);
	if (slot->distribution != SY_UNIFORM) {
		(void)json_object_set_new(json, "mean_s", seconds(slot->mean_us));
		(void)json_object_set_new(json, "jitter_s", seconds(slot->jitter_us));
		(void)json_object_set_new(json, "distribution",
					  json_string(sy_distribution_names[slot->distribution]));
	}
	return json;
}

static json_t *trace_json(const struct sy_netem *spec)
{
	return spec->has_trace
		   ? json_sprintf("%s%s", spec->trace, spec->trace_repeats ? ":repeat" : "")
		   : NULL;
}

static json_t *sites_json(const struct sy_netem *spec)
{
	return spec->has_sites ? json_string(spec->sites) : NULL;
}

static json_t *seed_json(const struct sy_netem *spec)
{
	return spec->has_seed ? json_integer(spec->seed) : NULL;
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
