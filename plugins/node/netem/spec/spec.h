/* Room netem/spec: the netem specification, one grammar for sbatch, studies and the command line
 * (docs/netem.md).
 *
 *   delay=50ms[~5ms[/normal|pareto|paretonormal|table:NAME]],loss=0.1%,rate=100mbit,to=10.0.0.0/8
 * or   none
 *
 * Every key is a row of facts/netem_keys.def. spec.c parses a text into struct sy_netem,
 * canonical_text.c writes it back, values.h reads and writes single values, compound_values.h those
 * of several numbers, and loss_statistics.h computes what loss a specification means, and which
 * count is within chance.
 *
 * It promises: one meaning has one canonical text, and parsing that gives the same specification;
 * numbers are integers (µs, bit/s, 10⁻⁹), and nothing passes through a float. Parsing is strict: an
 * unknown key, a key given twice or a value out of range is an error that names the part.
 *
 * It does not know tc, the policy or this node: whether a specification is allowed, or possible
 * here, is for policy/ and kernel/. */
#ifndef STEELYARD_NETEM_SPEC_SPEC_H
#define STEELYARD_NETEM_SPEC_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/spec/compound_values.h"
#include "netem/spec/values.h"

#define SY_NETEM_SIZE	 1024 /* longest specification, with its NUL; canonical text fits too */
#define SY_NETEM_TARGETS 8    /* how many `to=`, and how many `port=` */
#define SY_DEVICE_SIZE	 16   /* IFNAMSIZ */
#define SY_TABLE_SIZE	 32   /* of the name of a delay table, a trace, sites, with its NUL */

enum sy_direction { SY_EGRESS, SY_INGRESS, SY_BOTH };

/* In the order of their enum; the last one is NULL. */
extern const char *const sy_direction_names[];

/* A key that was not requested has its flag false and its value 0. */
struct sy_netem {
	bool none; /* `none`: nothing is touched */
/* bool has_delay, has_loss …; int64_t delay_us; int32_t loss_ppb … */
#define VALUE(id, key, role, kind, ...) SY_FLAG_##role(id) SY_DECLARE_##kind(id)
#include "facts/netem_keys.def"
	enum sy_distribution distribution;
	char table[SY_TABLE_SIZE]; /* SY_TABLE: its name */
	struct sy_gemodel gemodel;
	struct sy_loss_state state;
	struct sy_rate_overhead overhead;
	struct sy_slot slot;
	char trace[SY_TABLE_SIZE]; /* its name */
	bool trace_repeats;
	char sites[SY_TABLE_SIZE]; /* their file's name */
	int64_t seed;
	int to_count, port_count;
	struct sy_network to[SY_NETEM_TARGETS];
	uint16_t port[SY_NETEM_TARGETS]; /* TCP or UDP, either end */
	char device[SY_DEVICE_SIZE];	 /* "" : found from the route to `to` */
	enum sy_direction direction;	 /* SY_EGRESS where none was named */
};

/* Parse a specification: 0, or -1 with a sentence that names the part and what is allowed there. */
int sy_netem_parse(const char *text, struct sy_netem *spec, struct sy_error *err);

/* Whether packets can be lost, doubled, spoilt or overtaken: then offloads must be off, or it
 * would happen to super-packets of 64 KB. */
bool sy_netem_needs_single_packets(const struct sy_netem *spec);

/* Whether only sch_netem can do it; a rate alone sch_tbf can as well. */
bool sy_netem_needs_netem(const struct sy_netem *spec);

/* The canonical text: parts in the order of the grammar, the largest unit that loses nothing.
 * Parsing it gives the same specification. Returns its length; `text` holds SY_NETEM_SIZE. */
size_t sy_netem_format(const struct sy_netem *spec, char *text);

/* The specification as a JSON object in SI units (docs/formats.md part 9): delay_s, loss (a
 * fraction) …; keys that were not requested are absent. A new reference. */
json_t *sy_netem_json(const struct sy_netem *spec);

#endif
