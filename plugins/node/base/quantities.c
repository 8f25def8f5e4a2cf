#include "base/quantities.h"

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
