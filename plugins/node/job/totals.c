#include "job/totals.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Files of samples are their users' to change: what cannot have been counted is no number. A double
 * tells each whole number up to 2^53, which is 9 PB. */
static bool is_countable(double value)
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
		totals->known[i] = json_is_number(value) && is_countable(totals->value[i]);
	}
	totals->no_gpus = !json_object_get(document, sy_total_facts[SY_GPU_ENERGY_J].name);
	totals->exclusive = exclusive_from(json_object_get(document, "exclusive"));
	totals->other_networks = json_object_get(document, "other_networks") != NULL;
	totals->start = (time_t)json_integer_value(json_object_get(document, "start"));
	json_decref(document);
	return is_object;
}

/* The number in field `index` of a CSV line; false: empty, not there, or no number. */
static bool field_value(const char *line, size_t index, double *value)
{
	size_t length = strcspn(line, "\n");
	const char *end = line + length;
	char *after;

	while (index > 0) {
		const char *comma = memchr(line, ',', (size_t)(end - line));

		if (!comma)
			return false;
		line = comma + 1;
		index--;
	}
	if (line == end || *line == ',')
		return false;
	*value = strtod(line, &after);
	return (after == end || *after == ',') && is_countable(*value);
}

/* The position of a column; false when the header has none of that name. */
static bool column_index(const char *header, const char *name, size_t *index)
{
	size_t length = strlen(name);

	for (*index = 0;; (*index)++) {
		if (strncmp(header, name, length) == 0 && strchr(",\n", header[length]))
			return true;
		header += strcspn(header, ",\n");
		if (*header != ',')
			return false;
		header++;
	}
}

/* The last line that ends with a newline (what follows it was cut short); NULL: none. */
static const char *last_line(const char *text)
{
	const char *end = strrchr(text, '\n');

	if (!end)
		return NULL;
	while (end > text && end[-1] != '\n')
		end--;
	return end;
}

static bool largest_value(const char *text, size_t index, double *largest)
{
	bool known = false;
	double value;

	for (const char *line = text; strchr(line, '\n'); line = strchr(line, '\n') + 1) {
		if (!field_value(line, index, &value) || value <= 0) /* 0: of no process */
			continue;
		*largest = known && *largest > value ? *largest : value;
		known = true;
	}
	return known;
}

/* Processes are counted from the moment on that a step has announced itself. */
static bool nobody_was_named(const char *header, const char *line)
{
	size_t index;
	double count;

	return column_index(header, "processes", &index) && !field_value(line, index, &count);
}

bool sy_totals_from_csv(struct sy_totals *totals, const char *header, const char *text,
			bool whole_file)
{
	const char *line = last_line(text);

	*totals = (struct sy_totals){0};
	if (!line || (whole_file && line == text)) /* nothing, or the header alone */
		return false;
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		size_t index;

		if (fact->cell == SY_NO_CELL ||
		    !column_index(header, sy_column_facts[fact->cell].name, &index))
			continue;
		if (fact->over_time == SY_OVER_LAST)
			totals->known[i] = field_value(line, index, &totals->value[i]);
		else if (whole_file)
			totals->known[i] = largest_value(text, index, &totals->value[i]);
	}
	totals->idle = nobody_was_named(header, line);
	return true;
}

static void add_total(struct sy_job_totals *job, const struct sy_totals *node, int which)
{
	double *sum = &job->sum.value[which];
	bool known = node->known[which] && is_countable(*sum + node->value[which]);

	job->unknown_on[which] += !known;
	job->sum.known[which] = job->unknown_on[which] == 0 && (job->sum.known[which] || known);
	if (!known)
		return;
	if (sy_total_facts[which].over_nodes == SY_OVER_SUM)
		*sum += node->value[which];
	else if (node->value[which] > *sum)
		*sum = node->value[which];
}

/* Shared on one node: shared. Not said of one: not said. */
static enum sy_exclusive both(enum sy_exclusive a, enum sy_exclusive b)
{
	if (a == SY_SHARED || b == SY_SHARED)
		return SY_SHARED;
	return a == SY_ALONE && b == SY_ALONE ? SY_ALONE : SY_NOT_SAID;
}

void sy_job_totals_add(struct sy_job_totals *job, const struct sy_totals *node)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		enum sy_total_of whose = sy_total_facts[i].whose;

		if (!node->idle || whose == SY_OF_NODE || whose == SY_OF_SAMPLER)
			add_total(job, node, i);
	}
	/* As our own node: of others only their samples are known, which name no job's. */
	if (!job->nodes_weighed)
		job->sum.no_gpus = node->no_gpus;
	job->sum.exclusive =
	    job->nodes_weighed ? both(job->sum.exclusive, node->exclusive) : node->exclusive;
	job->nodes_weighed++;
	job->nodes_idle += node->idle;
}
