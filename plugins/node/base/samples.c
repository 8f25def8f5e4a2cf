#include "base/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sy_column_fact sy_column_facts[SY_FIXED] = {
#define COLUMN(cell, name, unit, ...) [SY_##cell] = {name, SY_UNIT_##unit},
#include "facts/quantities.def"
};

const struct sy_total_fact sy_total_facts[SY_TOTALS] = {
#define TOTAL(id, name, path, unit, cell, over_time, over_nodes, whose, reported_in, ...)          \
	[SY_##id] = {name,                                                                         \
		     path,                                                                         \
		     SY_UNIT_##unit,                                                               \
		     SY_##cell,                                                                    \
		     SY_OVER_##over_time,                                                          \
		     SY_OVER_##over_nodes,                                                         \
		     SY_OF_##whose,                                                                \
		     SY_REPORTED_IN_##reported_in},
#include "facts/quantities.def"
};

static bool is_micro(int cell)
{
	return cell < SY_FIXED ? sy_is_micro(sy_column_facts[cell].unit) : cell < SY_RX_DEVICE;
}

void sy_line_clear(struct sy_line *line)
{
	for (int i = 0; i < SY_CELLS; i++)
		line->cell[i] = SY_UNKNOWN;
}

static bool is_used_label(const struct sy_label *labels, int index, const char *text)
{
	for (int i = 0; i < index; i++)
		if (!strcmp(labels[i].text, text))
			return true;
	return false;
}

void sy_label_set(struct sy_label *labels, int index, const char *name)
{
	char text[32], *label = labels[index].text;

	(void)snprintf(text, sizeof(text), "%s", *name ? name : "unnamed");
	for (char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == ',' || *c == '"' || *c == 0x7f)
			*c = '_';
	(void)snprintf(label, sizeof(labels[index].text), "%s", text);
	for (int n = 1; is_used_label(labels, index, label); n++)
		(void)snprintf(label, sizeof(labels[index].text), "%s#%d", text, n);
}

void sy_columns_init(struct sy_columns *columns, const struct sy_labels *labels)
{
	int n = 0;

	for (int i = 0; i < SY_FIXED; i++)
		columns->cell[n++] = (uint16_t)i;
	for (int i = 0; i < labels->zones; i++)
		columns->cell[n++] = (uint16_t)(SY_ZONE + i);
	for (int i = 0; i < labels->devices; i++) {
		columns->cell[n++] = (uint16_t)(SY_RX_DEVICE + i);
		columns->cell[n++] = (uint16_t)(SY_TX_DEVICE + i);
	}
	columns->count = n;
}

/* The name of any column: its length; `buffer` holds 64. */
static int column_name(int cell, const struct sy_labels *labels, char *buffer)
{
	if (cell < SY_FIXED)
		return snprintf(buffer, 64, "%s", sy_column_facts[cell].name);
	if (cell < SY_RX_DEVICE)
		return snprintf(buffer, 64, "energy_j:%s", labels->zone[cell - SY_ZONE].text);
	if (cell < SY_TX_DEVICE)
		return snprintf(buffer, 64, "rx_bytes:%s",
				labels->device[cell - SY_RX_DEVICE].text);
	return snprintf(buffer, 64, "tx_bytes:%s", labels->device[cell - SY_TX_DEVICE].text);
}

size_t sy_format_header(const struct sy_labels *labels, char *buffer)
{
	struct sy_columns columns;
	size_t used = 0;

	sy_columns_init(&columns, labels);
	for (int i = 0; i < columns.count; i++) {
		char name[64];
		int length = column_name(columns.cell[i], labels, name);

		/* Labels are at most 47 long: 196 of them stay below SY_LINE_SIZE … */
		if (used + (size_t)length + 2 > SY_LINE_SIZE)
			break; /* … except when all are as long as can be: then columns go. */
		memcpy(buffer + used, name, (size_t)length);
		used += (size_t)length;
		buffer[used++] = ',';
	}
	buffer[used - 1] = '\n';
	return used;
}

/* Digits of a value that is not negative, at least `least` of them: the end. */
static char *digits(char *out, int64_t value, int least)
{
	char text[20];
	int n = 0;

	while (value > 0 || n < least) {
		text[n++] = (char)('0' + value % 10);
		value /= 10;
	}
	while (n > 0)
		*out++ = text[--n];
	return out;
}

size_t sy_format_line(const struct sy_columns *columns, const struct sy_line *line, char *buffer)
{
	char *out = buffer;

	for (int i = 0; i < columns->count; i++) {
		int64_t value = line->cell[columns->cell[i]];

		if (value >= 0 && is_micro(columns->cell[i])) {
			out = digits(out, value / 1000000, 1);
			*out++ = '.';
			out = digits(out, value % 1000000, 6);
		} else if (value >= 0) {
			out = digits(out, value, 1);
		}
		*out++ = ',';
	}
	out[-1] = '\n';
	return (size_t)(out - buffer);
}

static int find_column(const char *name, size_t length, const struct sy_labels *labels)
{
	struct sy_columns all;

	sy_columns_init(&all, labels);
	for (int i = 0; i < all.count; i++) {
		char known[64];

		if (column_name(all.cell[i], labels, known) == (int)length &&
		    !strncmp(known, name, length))
			return all.cell[i];
	}
	return SY_NO_CELL;
}

int sy_parse_header(const char *text, const struct sy_labels *labels, struct sy_columns *columns,
		    struct sy_error *err)
{
	columns->count = 0;
	for (;;) {
		size_t length = strcspn(text, ",\n");

		if (columns->count == (int)(sizeof(columns->cell) / sizeof(columns->cell[0])))
			return sy_fail(err, "more than %d columns", columns->count);
		columns->cell[columns->count++] = (uint16_t)find_column(text, length, labels);
		if (text[length] != ',')
			break;
		text += length + 1;
	}
	for (int i = 0; i < columns->count; i++)
		if (columns->cell[i] == SY_ELAPSED)
			return 0;
	return sy_fail(err, "no column elapsed_s in its first line: not a file of samples");
}

/* A cell as written by sy_format_line, up to `length`; six decimals at most. */
static int parse_cell(const char *text, size_t length, bool micro, int64_t *value)
{
	int64_t result = 0;
	int decimals = -1;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '.' && micro && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || decimals == 6 || result > INT64_MAX / 10 - 1)
			return -1;
		result = result * 10 + (text[i] - '0');
		decimals += decimals >= 0;
	}
	for (int i = decimals < 0 ? 0 : decimals; micro && i < 6; i++) {
		if (result > INT64_MAX / 10)
			return -1;
		result *= 10;
	}
	*value = length ? result : SY_UNKNOWN;
	return 0;
}

int sy_parse_line(const char *text, const struct sy_columns *columns, struct sy_line *line)
{
	struct sy_line result;

	sy_line_clear(&result);
	for (int i = 0; i < columns->count; i++) {
		size_t length = strcspn(text, ",\n");
		int cell = columns->cell[i];
		bool last = i == columns->count - 1;

		if (last ? text[length] == ',' : text[length] != ',')
			return -1;
		if (cell != SY_NO_CELL &&
		    parse_cell(text, length, is_micro(cell), &result.cell[cell]) < 0)
			return -1;
		text += length + !last;
	}
	*line = result;
	return 0;
}

void sy_sums_init(struct sy_sums *sums)
{
	*sums = (struct sy_sums){.first_unix = SY_UNKNOWN};
	for (int i = 0; i < SY_TOTALS; i++)
		sums->largest[i] = SY_UNKNOWN;
	sy_line_clear(&sums->last);
}

/* Nothing that runs has none: 0 is of no process, or only of one that has ended. */
static bool is_peak(struct sy_sums *sums, enum sy_total which, int64_t value)
{
	if (value <= 0 || value <= sums->largest[which])
		return false;
	sums->largest[which] = value;
	return true;
}

bool sy_sums_peak(struct sy_sums *sums, int64_t bytes)
{
	return is_peak(sums, SY_MAX_MEMORY_BYTES, bytes);
}

void sy_sums_add(struct sy_sums *sums, const struct sy_line *line)
{
	if (sums->samples++ == 0)
		sums->first_unix = line->cell[SY_UNIX];
	for (int i = 0; i < SY_TOTALS; i++)
		if (sy_total_facts[i].over_time == SY_OVER_LARGEST)
			(void)is_peak(sums, (enum sy_total)i, line->cell[sy_total_facts[i].cell]);
	sums->last = *line;
}

int64_t sy_sums_total(const struct sy_sums *sums, enum sy_total which)
{
	const struct sy_total_fact *fact = &sy_total_facts[which];

	if (sums->unsure[which])
		return SY_UNKNOWN;
	if (fact->over_time == SY_OVER_LARGEST)
		return sums->largest[which];
	return fact->cell == SY_NO_CELL ? SY_UNKNOWN : sums->last.cell[fact->cell];
}

int sy_rate_parse(const char *text, double max_hz, double *hz, struct sy_error *err)
{
	/* No sign, blank, exponent, hexadecimal, inf or nan, all of which strtod() would take. */
	bool plain = text[strspn(text, "0123456789.")] == '\0';
	char *end;
	double value = plain ? strtod(text, &end) : -1;

	if (!plain || end == text || *end || value > max_hz ||
	    (value > 0 && value < SY_MIN_RATE_HZ) || value < 0)
		return sy_fail(err, "expected a rate in Hz: 0 (totals only), or %g to %g",
			       SY_MIN_RATE_HZ, max_hz);
	*hz = value;
	return 0;
}
