/* Delay tables: tc's own format (*.dist), in a folder of root's. tc reads them itself when it is
 * told the folder; here they are checked before, and it is kept what a measurement may be judged
 * by. */
#ifndef STEELYARD_NETEM_KERNEL_DELAY_TABLE_H
#define STEELYARD_NETEM_KERNEL_DELAY_TABLE_H

#include <jansson.h>

#include "base/error.h"
#include "netem/spec/spec.h"

#define SY_DELAY_TABLES	    "/etc/steelyard/netem"
#define SY_DELAY_TABLE_MOST 16384 /* sch_netem.c: NETEM_DIST_MAX */
#define SY_DELAY_TABLE_UNIT 8192  /* of a table is one jitter: sch_netem.c, NETEM_DIST_SCALE */

/* The table that a specification names, as `{name, values, least, low, median, high, most}`: a new
 * reference. Each in jitters from the delay; the median of `answers` of its values lies between low
 * and high in 99.9 %. Without a table in `spec`: JSON's null. NULL: it is not there or not as
 * expected. */
json_t *sy_delay_table_read(const char *folder, const struct sy_netem *spec, int answers,
			    struct sy_error *err);

#endif
