#include "totals.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *column; /* in the samples */
	bool is_bytes;
	bool largest; /* of several nodes the largest counts, not the sum */
} totals_table[SY_TOTALS] = {
    [SY_ELAPSED_S] = {"elapsed_s", "elapsed_s", false, true},
    [SY_ENERGY_J] = {"energy_j", "energy_j", false, false},
    [SY_CPU_S] = {"cpu_s", "cpu_s", false, false},
    [SY_MAX_MEMORY_BYTES] = {"max_memory_bytes", "memory_bytes", true, true},
    [SY_RCHAR_BYTES] = {"rchar_bytes", "rchar_bytes", true, false},
    [SY_WCHAR_BYTES] = {"wchar_bytes", "wchar_bytes", true, false},
    [SY_READ_BYTES] = {"read_bytes", "read_bytes", true, false},
    [SY_WRITE_BYTES] = {"write_bytes", "write_bytes", true, false},
    [SY_RX_BYTES] = {"rx_bytes", "rx_bytes", true, false},
    [SY_TX_BYTES] = {"tx_bytes", "tx_bytes", true, false},
};

const char *sy_total_name(enum sy_total which)
{
	return totals_table[which].name;
}

bool sy_total_is_bytes(enum sy_total which)
{
	return totals_table[which].is_bytes;
}

bool sy_totals_from_json(struct sy_totals *totals, const char *text)
{
	json_t *document = json_loads(text, 0, NULL);
	bool is_object = json_is_object(document);

	*totals = (struct sy_totals){0};
	for (int i = 0; is_object && i < SY_TOTALS; i++) {
		const json_t *value = json_object_get(document, totals_table[i].name);

		totals->known[i] = json_is_number(value);
		totals->value[i] = json_number_value(value);
	}
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
	return after == end || *after == ',';
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

bool sy_totals_from_csv(struct sy_totals *totals, const char *header, const char *text,
			bool whole_file)
{
	const char *line = last_line(text);

	*totals = (struct sy_totals){0};
	if (!line || (whole_file && line == text)) /* nothing, or the header alone */
		return false;
	for (int i = 0; i < SY_TOTALS; i++) {
		size_t index;

		if (!column_index(header, totals_table[i].column, &index))
			continue;
		if (i != SY_MAX_MEMORY_BYTES)
			totals->known[i] = field_value(line, index, &totals->value[i]);
		else if (whole_file)
			totals->known[i] = largest_value(text, index, &totals->value[i]);
	}
	return true;
}

void sy_job_totals_add(struct sy_job_totals *job, const struct sy_totals *node)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		double *sum = &job->sum.value[i];

		job->sum.known[i] =
		    node->known[i] && (job->nodes_weighed == 0 || job->sum.known[i]);
		if (!job->sum.known[i])
			*sum = 0;
		else if (!totals_table[i].largest)
			*sum += node->value[i];
		else if (node->value[i] > *sum)
			*sum = node->value[i];
	}
	job->nodes_weighed++;
}
