/* One sample as a line of numbers, and its CSV (docs/formats.md part 2).
 *
 * A cell holds µs, µJ, bytes or a count; what the format has in seconds and joules is written with
 * six decimals, so that no value passes through a float. */
#ifndef STEELYARD_BASE_SAMPLE_LINE_H
#define STEELYARD_BASE_SAMPLE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/quantities.h"

#define SY_UNKNOWN INT64_MIN /* an empty cell */

/* The widest line there can be: each cell 20 digits and sign, point and comma. */
#define SY_LINE_SIZE (SY_CELLS * 23)

struct sy_line {
	int64_t cell[SY_CELLS];
};

/* Which cell each column of a file holds. */
struct sy_columns {
	int count;
	uint16_t cell[SY_CELLS + 32];
};

struct sy_label {
	char text[48];
};

/* What the columns of zones and devices are called. */
struct sy_labels {
	int zones, devices;
	struct sy_label zone[SY_MAX_ZONES], device[SY_MAX_DEVICES];
};

void sy_line_clear(struct sy_line *line);

/* Set a label: characters that would break a CSV become "_", and a name that exists already gets
 * "#1" … */
void sy_label_set(struct sy_label *labels, int index, const char *name);

void sy_columns_init(struct sy_columns *columns, const struct sy_labels *labels);

/* Both return the length, newline included; `buffer` holds SY_LINE_SIZE. */
size_t sy_format_header(const struct sy_labels *labels, char *buffer);
size_t sy_format_line(const struct sy_columns *columns, const struct sy_line *line, char *buffer);

/* Read a first line: finds columns by name, zones and devices by their labels. */
int sy_parse_header(const char *text, const struct sy_labels *labels, struct sy_columns *columns,
		    struct sy_error *err);

/* Read a line (up to its newline): 0, or -1 when it has not as many cells or one is no number. */
int sy_parse_line(const char *text, const struct sy_columns *columns, struct sy_line *line);

#endif
