#include "totals.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *path; /* in the record */
	bool is_bytes;
	bool largest; /* of several nodes the largest counts, not the sum */
	bool of_node; /* and not of the job's processes */
} totals_table[SY_TOTALS] = {
    [SY_ELAPSED_S] = {.name = "elapsed_s", .path = "elapsed_s", .largest = true},
    [SY_ENERGY_J] = {.name = "energy_j", .path = "energy.energy_j", .of_node = true},
    [SY_CPU_S] = {.name = "cpu_s", .path = "cpu.cpu_s"},
    [SY_CPU_UNSEEN_S] = {.name = "cpu_unseen_s", .path = "cpu.unseen_s"},
    [SY_MAX_MEMORY_BYTES] = {.name = "max_memory_bytes",
			     .path = "memory.max_memory_bytes",
			     .is_bytes = true,
			     .largest = true},
    [SY_RCHAR_BYTES] = {.name = "rchar_bytes", .path = "io.rchar_bytes", .is_bytes = true},
    [SY_WCHAR_BYTES] = {.name = "wchar_bytes", .path = "io.wchar_bytes", .is_bytes = true},
    [SY_READ_BYTES] = {.name = "read_bytes", .path = "io.read_bytes", .is_bytes = true},
    [SY_WRITE_BYTES] = {.name = "write_bytes", .path = "io.write_bytes", .is_bytes = true},
    [SY_RX_BYTES] = {.name = "rx_bytes",
		     .path = "network.rx_bytes",
		     .is_bytes = true,
		     .of_node = true},
    [SY_TX_BYTES] = {.name = "tx_bytes",
		     .path = "network.tx_bytes",
		     .is_bytes = true,
		     .of_node = true},
};

/* The samples' column of a total is named like it, but for the memory, of which they have that of
 * the moment. */
static const char *column_of(enum sy_total which)
{
	return which == SY_MAX_MEMORY_BYTES ? "memory_bytes" : totals_table[which].name;
}

const char *sy_total_name(enum sy_total which)
{
	return totals_table[which].name;
}

const char *sy_total_path(enum sy_total which)
{
	return totals_table[which].path;
}

bool sy_total_is_of_node(enum sy_total which)
{
	return totals_table[which].of_node;
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
		size_t index;

		if (!column_index(header, column_of((enum sy_total)i), &index))
			continue;
		if (i != SY_MAX_MEMORY_BYTES)
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

	job->unknown_on[which] += !node->known[which];
	job->sum.known[which] =
	    job->unknown_on[which] == 0 && (job->sum.known[which] || node->known[which]);
	if (!node->known[which])
		return;
	if (!totals_table[which].largest)
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
		if (!node->idle || totals_table[i].of_node || i == SY_ELAPSED_S)
			add_total(job, node, i);
	}
	job->sum.exclusive =
	    job->nodes_weighed ? both(job->sum.exclusive, node->exclusive) : node->exclusive;
	job->nodes_weighed++;
	job->nodes_idle += node->idle;
}
