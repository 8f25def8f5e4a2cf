/* Files of root's that conditions name, in one folder on each node: traces and sites, which are
 * only opened here, and delay tables in tc's own format (*.dist). tc reads a delay table itself;
 * here it is checked before, and what a measurement may be judged by is kept. */
#ifndef STEELYARD_NETEM_KERNEL_DELAY_TABLES_H
#define STEELYARD_NETEM_KERNEL_DELAY_TABLES_H

#include <jansson.h>

#include "base/error.h"
#include "netem/spec/spec.h"

#define SY_TABLES	    "/etc/steelyard/netem"
#define SY_DELAY_TABLE_MOST 16384 /* sch_netem.c: NETEM_DIST_MAX */
#define SY_DELAY_TABLE_UNIT 8192  /* of a table is one jitter: sch_netem.c, NETEM_DIST_SCALE */

/* The text of a file, to be freed, and its length. It must belong to root (or to the caller), be
 * writable by its owner alone, and be smaller than `most` bytes. `what` it is and `maker`, how to
 * make one (": …", may be empty), are for messages. NULL: it cannot be had. */
char *sy_table_read(const char *path, const char *what, const char *maker, int most, size_t *length,
		    struct sy_error *err);

/* The delay table that a specification names, as `{name, values, least, low, median, high, most}`:
 * a new reference. Each in jitters from the delay; the median of `answers` of its values is between
 * low and high in 99.9 %. Without a table in `spec`: JSON's null. NULL: it is missing or malformed.
 */
json_t *sy_delay_table_read(const char *folder, const struct sy_netem *spec, int answers,
			    struct sy_error *err);

#endif
