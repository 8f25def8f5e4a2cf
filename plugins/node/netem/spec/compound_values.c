#include "netem/spec/compound_values.h"

#include "netem/spec/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const sy_distribution_names[] = {"uniform", "normal", "pareto", "paretonormal", NULL};

/* So many percentages as there are, at most `most`: how many; -1. */
static int parse_percents(char *value, int32_t *const fields[], int most, const char *names,
			  struct sy_error *err)
{
	int count = 0;

	for (char *next; value; value = next) {
		if (count == most)
			return sy_fail(err, "expected at most %d percentages: %s", most, names);
		next = sy_cut(value, ':');
		if (sy_parse_percent(value, fields[count++], err) < 0)
			return -1;
	}
	return count;
}

int sy_parse_gemodel(char *value, struct sy_gemodel *model, struct sy_error *err)
{
	int32_t *const fields[] = {&model->p_ppb, &model->r_ppb, &model->one_minus_h_ppb,
				   &model->one_minus_k_ppb};
	int count = parse_percents(value, fields, 4, "p:r:1-h:1-k", err);

	if (count < 0)
		return -1;
	if (count < 2)
		model->r_ppb = SY_WHOLE_PPB - model->p_ppb;
	if (count < 3)
		model->one_minus_h_ppb = SY_WHOLE_PPB;
	return 0;
}

/* A state that is never left again would be another condition after a while. */
static int check_loss_state(const struct sy_loss_state *state, struct sy_error *err)
{
	if (state->p13_ppb > SY_WHOLE_PPB - state->p14_ppb)
		return sy_fail(err, "p13 and p14 are chances of one packet: expected at most 100%% "
				    "together");
	if (state->p31_ppb > SY_WHOLE_PPB - state->p32_ppb)
		return sy_fail(err, "p31 and p32 are chances of one packet: expected at most 100%% "
				    "together");
	if (state->p13_ppb && !state->p31_ppb)
		return sy_fail(err, "p31 is 0%%: a burst would never end; expected more");
	if (state->p32_ppb && !state->p23_ppb)
		return sy_fail(err, "p23 is 0%%: what p32 leads to would never end; expected more");
	return 0;
}

int sy_parse_loss_state(char *value, struct sy_loss_state *state, struct sy_error *err)
{
	int32_t *const fields[] = {&state->p13_ppb, &state->p31_ppb, &state->p32_ppb,
				   &state->p23_ppb, &state->p14_ppb};
	int count = parse_percents(value, fields, 5, "p13:p31:p32:p23:p14", err);

	if (count < 0)
		return -1;
	if (count < 2)
		state->p31_ppb = SY_WHOLE_PPB - state->p13_ppb;
	if (count < 4)
		state->p23_ppb = SY_WHOLE_PPB;
	return check_loss_state(state, err);
}

static int parse_bytes(const char *text, int64_t least, int64_t most, int32_t *bytes,
		       struct sy_error *err)
{
	bool negative = *text == '-' && least < 0;
	int64_t number;

	if (sy_parse_count(text + negative, 0, negative ? -least : most, &number, NULL) < 0)
		return sy_fail(err, "expected bytes from %" PRId64 " to %" PRId64 " there", least,
			       most);
	*bytes = (int32_t)(negative ? -number : number);
	return 0;
}

int sy_parse_overhead(char *value, struct sy_rate_overhead *overhead, struct sy_error *err)
{
	char *cell = sy_cut(value, ':'), *more = cell ? sy_cut(cell, ':') : NULL;

	if (parse_bytes(value, SY_OVERHEAD_LEAST_BYTES, SY_OVERHEAD_MOST_BYTES,
			&overhead->packet_bytes, err) < 0)
		return -1;
	if (cell && parse_bytes(cell, 0, SY_CELL_MOST_BYTES, &overhead->cell_bytes, err) < 0)
		return -1;
	if (more &&
	    parse_bytes(more, 0, SY_OVERHEAD_MOST_BYTES, &overhead->cell_overhead_bytes, err) < 0)
		return -1;
	if (overhead->cell_overhead_bytes && !overhead->cell_bytes)
		return sy_fail(err, "a cell of 0 bytes takes nothing more: expected its size, such "
				    "as rate=10mbit:0:48:5");
	return 0;
}

int64_t sy_bytes_on_link(const struct sy_rate_overhead *overhead, int64_t bytes)
{
	int64_t cell = overhead->cell_bytes;

	bytes += overhead->packet_bytes;
	return cell ? (bytes + cell - 1) / cell * (cell + overhead->cell_overhead_bytes) : bytes;
}

static int parse_slot_count(const char *text, int32_t *count, struct sy_error *err)
{
	int64_t number = 0;

	if (text && sy_parse_count(text, 0, INT32_MAX, &number, err) < 0)
		return -1;
	*count = (int32_t)number;
	return 0;
}

void sy_slot_spread(struct sy_slot *slot)
{
	slot->min_us = slot->mean_us - SY_TABLE_JITTERS * slot->jitter_us;
	slot->min_us = slot->min_us < 0 ? 0 : slot->min_us;
	slot->max_us = slot->mean_us + SY_TABLE_JITTERS * slot->jitter_us;
}

/* 10ms~2ms/normal, cut at its `~` and `/`. */
static int parse_slot_spread(const char *mean, const char *jitter, const char *name,
			     struct sy_slot *slot, struct sy_error *err)
{
	for (int i = SY_NORMAL; name && sy_distribution_names[i]; i++)
		if (!strcmp(sy_distribution_names[i], name))
			slot->distribution = (enum sy_distribution)i;
	if (!jitter || slot->distribution == SY_UNIFORM)
		return sy_fail(err,
			       "expected slot=10ms:20ms, or a mean, a jitter and normal, pareto "
			       "or paretonormal, such as slot=10ms~2ms/normal");
	if (sy_parse_time(mean, SY_DELAY_MAX_US, &slot->mean_us, err) < 0 ||
	    sy_parse_time(jitter, SY_JITTER_MAX_US, &slot->jitter_us, err) < 0)
		return -1;
	if (!slot->jitter_us || slot->jitter_us > slot->mean_us)
		return sy_fail(err, "expected a jitter that is not 0 and at most the mean");
	sy_slot_spread(slot);
	return 0;
}

static int parse_slot_counts(const char *packets, const char *bytes, struct sy_slot *slot,
			     struct sy_error *err)
{
	return parse_slot_count(packets, &slot->packets, err) < 0 ||
		       parse_slot_count(bytes, &slot->bytes, err) < 0
		   ? -1
		   : 0;
}

int sy_parse_slot(char *value, struct sy_slot *slot, struct sy_error *err)
{
	char *most = sy_cut(value, ':'), *packets = most;
	char *name = sy_cut(value, '/'), *jitter = sy_cut(value, '~'), *bytes;

	if (!name && !jitter)
		packets = most ? sy_cut(most, ':') : NULL;
	bytes = packets ? sy_cut(packets, ':') : NULL;
	if (name || jitter)
		return parse_slot_spread(value, jitter, name, slot, err) < 0
			   ? -1
			   : parse_slot_counts(packets, bytes, slot, err);
	if (sy_parse_time(value, SY_DELAY_MAX_US, &slot->min_us, err) < 0)
		return -1;
	slot->max_us = slot->min_us;
	if (most && sy_parse_time(most, SY_DELAY_MAX_US, &slot->max_us, err) < 0)
		return -1;
	if (slot->max_us < slot->min_us || !slot->max_us)
		return sy_fail(err, "expected a longest time between slots that is not 0 and not "
				    "less than the shortest, such as slot=10ms:20ms");
	return parse_slot_counts(packets, bytes, slot, err);
}

/* So many of the words, with `:` between them. */
static const char *join(char fields[][SY_UNIT_SIZE], int count, char *text)
{
	size_t used = 0;

	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, SY_MODEL_SIZE - used, "%s%.20s", i ? ":" : "",
					 fields[i]);
	return text;
}

const char *sy_format_gemodel(const struct sy_gemodel *model, char *text)
{
	char fields[4][SY_UNIT_SIZE];
	int count = 1;

	(void)sy_format_percent(model->p_ppb, fields[0]);
	(void)sy_format_percent(model->r_ppb, fields[1]);
	(void)sy_format_percent(model->one_minus_h_ppb, fields[2]);
	(void)sy_format_percent(model->one_minus_k_ppb, fields[3]);
	if (model->r_ppb != SY_WHOLE_PPB - model->p_ppb)
		count = 2;
	if (model->one_minus_h_ppb != SY_WHOLE_PPB)
		count = 3;
	if (model->one_minus_k_ppb)
		count = 4;
	return join(fields, count, text);
}

const char *sy_format_loss_state(const struct sy_loss_state *state, char *text)
{
	const int32_t ppb[] = {state->p13_ppb, state->p31_ppb, state->p32_ppb, state->p23_ppb,
			       state->p14_ppb};
	const int32_t defaults[] = {-1, SY_WHOLE_PPB - state->p13_ppb, 0, SY_WHOLE_PPB, 0};
	char fields[5][SY_UNIT_SIZE];
	int count = 5;

	for (int i = 0; i < 5; i++)
		(void)sy_format_percent(ppb[i], fields[i]);
	while (ppb[count - 1] == defaults[count - 1])
		count--;
	return join(fields, count, text);
}

const char *sy_format_overhead(const struct sy_rate_overhead *overhead, char *text)
{
	char fields[3][SY_UNIT_SIZE];
	int count = overhead->cell_overhead_bytes ? 3 : overhead->cell_bytes ? 2 : 1;

	(void)snprintf(fields[0], SY_UNIT_SIZE, "%" PRId32, overhead->packet_bytes);
	(void)snprintf(fields[1], SY_UNIT_SIZE, "%" PRId32, overhead->cell_bytes);
	(void)snprintf(fields[2], SY_UNIT_SIZE, "%" PRId32, overhead->cell_overhead_bytes);
	return join(fields, count, text);
}

static const char *format_slot_spread(const struct sy_slot *slot, char *text)
{
	char mean[SY_UNIT_SIZE], jitter[SY_UNIT_SIZE];
	int length = snprintf(text, SY_MODEL_SIZE, "%s~%s/%s", sy_format_time(slot->mean_us, mean),
			      sy_format_time(slot->jitter_us, jitter),
			      sy_distribution_names[slot->distribution]);

	if (slot->packets || slot->bytes)
		length += snprintf(text + length, SY_MODEL_SIZE - (size_t)length, ":%" PRId32,
				   slot->packets);
	if (slot->bytes)
		(void)snprintf(text + length, SY_MODEL_SIZE - (size_t)length, ":%" PRId32,
			       slot->bytes);
	return text;
}

const char *sy_format_slot(const struct sy_slot *slot, char *text)
{
	char fields[4][SY_UNIT_SIZE];
	int count = slot->bytes ? 4 : slot->packets ? 3 : slot->max_us != slot->min_us ? 2 : 1;

	if (slot->distribution != SY_UNIFORM)
		return format_slot_spread(slot, text);
	(void)sy_format_time(slot->min_us, fields[0]);
	(void)sy_format_time(slot->max_us, fields[1]);
	(void)snprintf(fields[2], SY_UNIT_SIZE, "%" PRId32, slot->packets);
	(void)snprintf(fields[3], SY_UNIT_SIZE, "%" PRId32, slot->bytes);
	return join(fields, count, text);
}
