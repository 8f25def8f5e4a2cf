/* Samples: their columns, one of them as a line of numbers and its CSV, the totals of all of a file
 * (docs/formats.md part 2), and the rate at which they are taken. */
#ifndef STEELYARD_BASE_SAMPLES_H
#define STEELYARD_BASE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SY_MAX_ZONES   64
#define SY_MAX_DEVICES 64

/* --- columns of the samples, totals of the record: as facts/quantities.def has them --- */

enum sy_unit { SY_UNIT_S, SY_UNIT_J, SY_UNIT_BYTES, SY_UNIT_ONE };

enum sy_cell {
#define COLUMN(cell, ...) SY_##cell,
#include "facts/quantities.def"
	SY_FIXED, /* how many columns every file has */
	SY_ZONE = SY_FIXED,
	SY_RX_DEVICE = SY_ZONE + SY_MAX_ZONES,
	SY_TX_DEVICE = SY_RX_DEVICE + SY_MAX_DEVICES,
	SY_CELLS = SY_TX_DEVICE + SY_MAX_DEVICES,
	SY_NO_CELL = SY_CELLS, /* of a column that this version does not know, of a total without */
};

enum sy_total {
#define TOTAL(id, ...) SY_##id,
#include "facts/quantities.def"
	SY_TOTALS,
};

/* Where the four of I/O and the three of pressure are gone through one by one. */
_Static_assert(SY_WRITE - SY_RCHAR == 3 && SY_WRITE_BYTES - SY_RCHAR_BYTES == 3 &&
		   SY_PRESSURE_MEMORY - SY_PRESSURE_CPU == 2 &&
		   SY_PRESSURE_MEMORY_S - SY_PRESSURE_CPU_S == 2,
	       "quantities.def: rows of I/O, and of pressure, follow each other");

enum sy_over { SY_OVER_LAST, SY_OVER_LARGEST, SY_OVER_SUM };
enum sy_total_of { SY_OF_SAMPLER, SY_OF_NODE, SY_OF_PROCESSES, SY_OF_REAPED };
enum sy_reported_in {
	SY_REPORTED_IN_RECORD,
	SY_REPORTED_IN_DATABASE,
	SY_REPORTED_IN_COMMENT,
	SY_REPORTED_IN_BOTH,
	SY_REPORTED_IN_METRIC,
};

struct sy_column_fact {
	const char *name;
	enum sy_unit unit;
};

struct sy_total_fact {
	const char *name, *path; /* the path in the record, dotted */
	enum sy_unit unit;
	enum sy_cell cell;
	enum sy_over over_time, over_nodes;
	enum sy_total_of whose;
	enum sy_reported_in reported_in;
};

extern const struct sy_column_fact sy_column_facts[SY_FIXED];
extern const struct sy_total_fact sy_total_facts[SY_TOTALS];

/* Counted in millionths, written with six decimals. */
static inline bool sy_is_micro(enum sy_unit unit)
{
	return unit == SY_UNIT_S || unit == SY_UNIT_J;
}

/* The sampler's answer and AdminComment have it. */
static inline bool sy_is_in_comment(enum sy_total which)
{
	return sy_total_facts[which].reported_in >= SY_REPORTED_IN_COMMENT;
}

/* --- one sample as a line of numbers, and its CSV ---
 *
 * A cell holds µs, µJ, bytes or a count; what the format has in seconds and joules is written with
 * six decimals, so that no value passes through a float. */

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

/* --- totals ---
 *
 * Of all samples of a file, line by line: the last one's, of some columns the largest value.
 * `largest` is never 0, and of such totals only. `unsure`:
 * there may have been more. */
struct sy_sums {
	int64_t samples, first_unix, largest[SY_TOTALS];
	bool unsure[SY_TOTALS];
	struct sy_line last;
};

void sy_sums_init(struct sy_sums *sums);
void sy_sums_add(struct sy_sums *sums, const struct sy_line *line);

/* SY_UNKNOWN also for a total without a column, and for one that is unsure. */
int64_t sy_sums_total(const struct sy_sums *sums, enum sy_total which);

/* Memory that was in use at some time, between two samples maybe: whether it is the most so far. */
bool sy_sums_peak(struct sy_sums *sums, int64_t bytes);

/* --- the rate: one grammar and one message, for sbatch, steelyard-node and messages.
 * wrappers/commands/run.py has the same. --- */

#define SY_MIN_RATE_HZ 0.001
#define SY_MAX_RATE_HZ 1000.0 /* what the sampler can keep up with */

/* 0 (totals only), or SY_MIN_RATE_HZ to `max_hz`. */
int sy_rate_parse(const char *text, double max_hz, double *hz, struct sy_error *err);

#endif
