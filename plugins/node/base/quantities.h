/* The columns of the samples and the totals of the record, as facts/quantities.def has them. */
#ifndef STEELYARD_BASE_QUANTITIES_H
#define STEELYARD_BASE_QUANTITIES_H

#include <stdbool.h>

#define SY_MAX_ZONES   64
#define SY_MAX_DEVICES 64

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

#endif
