#include "netem/trace.h"

#include "base/file.h"
#include "netem/kernel/delay_tables.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES   (100 * SY_TRACE_MOST)
#define MOST_COLUMNS 4
#define MOST_TIME_US 604800000000LL /* a week */

enum column { TIME, DELAY, RATE, LOSS };

/* A column's name, and the unit that the grammar's own parser wants behind its numbers. */
static const struct {
	const char *name, *unit;
} columns[] = {{"time_s", "s"}, {"delay_ms", "ms"}, {"rate_mbit", "mbit"}, {"loss_percent", "%"}};

struct table {
	enum column column[MOST_COLUMNS];
	int count;
};

void sy_steps_free(struct sy_steps *steps)
{
	free(steps->step);
	steps->step = NULL;
}

static int read_head(char *line, struct table *table, struct sy_error *err)
{
	unsigned given = 0;

	while (line) {
		char *next = sy_cut(line, ',');
		int found = -1;

		for (int i = 0; i < MOST_COLUMNS; i++)
			if (!strcmp(columns[i].name, line))
				found = i;
		if (found < 0 || given & 1U << found)
			return sy_fail(err, "expected columns time_s, delay_ms, rate_mbit, "
					    "loss_percent, each once");
		given |= 1U << found;
		table->column[table->count++] = (enum column)found;
		line = next;
	}
	return given & 1 && given > 1
		   ? 0
		   : sy_fail(err, "expected a first line with time_s and at least one of delay_ms, "
				  "rate_mbit, loss_percent");
}

static int read_cell(enum column column, const char *cell, struct sy_step *step,
		     struct sy_error *err)
{
	char text[SY_UNIT_SIZE];

	(void)snprintf(text, sizeof(text), "%.40s%s", cell, columns[column].unit);
	switch (column) {
	case TIME:
		return sy_parse_time(text, MOST_TIME_US, &step->at_us, err);
	case DELAY:
		step->spec.has_delay = true;
		return sy_parse_time(text, SY_DELAY_MAX_US, &step->spec.delay_us, err);
	case RATE:
		step->spec.has_rate = true;
		return sy_parse_rate(text, &step->spec.rate_bit_per_s, err);
	case LOSS:
		break;
	}
	step->spec.has_loss = true;
	return sy_parse_percent(text, &step->spec.loss_ppb, err);
}

static int read_line(char *line, const struct table *table, struct sy_step *step,
		     struct sy_error *err)
{
	for (int i = 0; i < table->count; i++) {
		char *next = line ? sy_cut(line, ',') : NULL;

		if (!line || (i == table->count - 1 && next))
			return sy_fail(err, "expected %d numbers", table->count);
		if (read_cell(table->column[i], line, step, err) < 0)
			return -1;
		line = next;
	}
	return 0;
}

static int check_order(const struct sy_steps *steps, struct sy_error *err)
{
	const struct sy_step *step = &steps->step[steps->count - 1];

	if (steps->count == 1)
		return step->at_us ? sy_fail(err, "expected the first time_s to be 0") : 0;
	return step->at_us - step[-1].at_us < SY_TRACE_LEAST_US
		   ? sy_fail(err, "expected a time_s at least 0.1 after the one before")
		   : 0;
}

static int add_step(char *line, const struct table *table, const struct sy_netem *spec,
		    struct sy_steps *steps, struct sy_error *err)
{
	struct sy_step *step = &steps->step[steps->count];

	if (steps->count == SY_TRACE_MOST)
		return sy_fail(err, "expected at most %d lines", SY_TRACE_MOST);
	*step = (struct sy_step){.spec = *spec};
	step->spec.has_trace = step->spec.trace_repeats = false;
	memset(step->spec.trace, 0, sizeof(step->spec.trace));
	if (read_line(line, table, step, err) < 0)
		return -1;
	steps->count++;
	return check_order(steps, err);
}

static int parse_lines(char *text, const struct sy_netem *spec, struct sy_steps *steps, int *number,
		       struct sy_error *err)
{
	struct table table = {0};

	for (char *line; (line = strsep(&text, "\n"));) {
		++*number;
		line[strcspn(line, "\r")] = '\0';
		if (!*line || *line == '#')
			continue;
		if (table.count ? add_step(line, &table, spec, steps, err) < 0
				: read_head(line, &table, err) < 0)
			return -1;
	}
	return steps->count ? 0 : sy_fail(err, "expected lines of numbers");
}

int sy_trace_read(const char *folder, const struct sy_netem *spec, struct sy_steps *steps,
		  struct sy_error *err)
{
	cleanup_free char *text = NULL;
	struct sy_error reason = {{0}};
	char path[PATH_MAX];
	size_t length;
	int number = 0;

	*steps = (struct sy_steps){.step = calloc(SY_TRACE_MOST, sizeof(*steps->step))};
	(void)snprintf(path, sizeof(path), "%s/%s.csv", folder, spec->trace);
	if (!steps->step)
		return sy_fail(err, "out of memory");
	text = sy_table_read(path, "trace", "", MOST_BYTES, &length, err);
	if (text) {
		(void)sy_sha256(text, length, steps->sha256);
		if (parse_lines(text, spec, steps, &number, &reason) == 0)
			return 0;
		(void)sy_fail(err, "trace %s, line %d: %s", path, number, reason.text);
	}
	sy_steps_free(steps);
	return -1;
}

/* A trace that repeats lasts until its last line, which is the first one again. */
static int64_t find_length(const struct sy_steps *steps)
{
	return steps->step[steps->count - 1].at_us;
}

int64_t sy_steps_find_due(const struct sy_steps *steps, bool repeats, int64_t elapsed_us)
{
	int64_t round = 0, number = 0;

	if (repeats && steps->count > 1) {
		round = elapsed_us / find_length(steps);
		elapsed_us %= find_length(steps);
	}
	while (number + 1 < steps->count && steps->step[number + 1].at_us <= elapsed_us)
		number++;
	return round * (steps->count - 1) + number;
}

int64_t sy_steps_find_time(const struct sy_steps *steps, int64_t number)
{
	int64_t in_round = steps->count - 1;

	if (number <= in_round)
		return steps->step[number].at_us;
	return number / in_round * find_length(steps) + steps->step[number % in_round].at_us;
}

int sy_trace_check_policy(const struct sy_steps *steps, const struct sy_policy *policy,
			  struct sy_error *err)
{
	struct sy_error reason = {{0}};

	for (int i = 0; policy && i < steps->count; i++)
		if (sy_policy_allows_values(policy, &steps->step[i].spec, &reason) < 0)
			return sy_fail(err, "trace, from %.1f s on: %s",
				       (double)steps->step[i].at_us / 1e6, reason.text);
	return 0;
}

json_t *sy_steps_document(const struct sy_netem *requested, const struct sy_steps *steps)
{
	int32_t least = SY_WHOLE_PPB, most = 0;
	char first[SY_NETEM_SIZE];

	for (int i = 0; i < steps->count; i++) {
		int32_t loss = steps->step[i].spec.loss_ppb;

		least = loss < least ? loss : least;
		most = loss > most ? loss : most;
	}
	(void)sy_netem_format(&steps->step[0].spec, first);
	return json_pack("{s:s, s:s, s:b, s:i, s:f, s:I, s:s, s:f, s:f, s:[], s:n, s:n, s:n, s:n}",
			 "name", requested->trace, "sha256", steps->sha256, "repeats",
			 requested->trace_repeats, "lines", steps->count, "length_s",
			 (double)find_length(steps) / 1e6, "steps", (json_int_t)0, "first", first,
			 "least_loss", (double)least / SY_WHOLE_PPB, "most_loss",
			 (double)most / SY_WHOLE_PPB, "step_log", "failed", "began_boot_s",
			 "next_boot_s", "held_s");
}
