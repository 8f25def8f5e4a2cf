/* Values of a specification that are several numbers, with `:` between them. All may cut up their
 * text; errors say only what was expected. */
#ifndef STEELYARD_NETEM_SPEC_COMPOUND_VALUES_H
#define STEELYARD_NETEM_SPEC_COMPOUND_VALUES_H

#include <stdint.h>

#include "base/error.h"

enum sy_distribution { SY_UNIFORM, SY_NORMAL, SY_PARETO, SY_PARETONORMAL, SY_TABLE };

/* In the order of their enum, without SY_TABLE; the last one is NULL. */
extern const char *const sy_distribution_names[];

/* Gilbert–Elliott, tc-netem(8) `loss gemodel p [r [1-h [1-k]]]`, each in parts per billion. */
struct sy_gemodel {
	int32_t p_ppb, r_ppb, one_minus_h_ppb, one_minus_k_ppb;
};

/* tc-netem(8) `loss state p13 [p31 [p32 [p23 [p14]]]]`, each in parts per billion. */
struct sy_loss_state {
	int32_t p13_ppb, p31_ppb, p32_ppb, p23_ppb, p14_ppb;
};

/* What a packet takes of the rate in addition to its own bytes. */
struct sy_rate_overhead {
	int32_t packet_bytes, cell_bytes, cell_overhead_bytes; /* cell_bytes 0: no cells */
};

/* When packets leave; 0 packets or bytes: any. With a distribution (SY_UNIFORM: none), whose tables
 * end at four jitters, min_us and max_us follow from it. */
struct sy_slot {
	int64_t min_us, max_us;
	int32_t packets, bytes;
	enum sy_distribution distribution;
	int64_t mean_us, jitter_us;
};

/* sch_netem.c, packet_time_ns(): a packet that becomes shorter than nothing would never leave.
 * Every packet of a queue has at least its Ethernet header, and no link's header is longer than an
 * MTU. */
#define SY_OVERHEAD_LEAST_BYTES (-14)
#define SY_OVERHEAD_MOST_BYTES	1500
#define SY_CELL_MOST_BYTES	65535

/* Each: 0, or -1 with what was expected. Left out from the right: the defaults of tc-netem(8). */
int sy_parse_gemodel(char *value, struct sy_gemodel *model, struct sy_error *err);
int sy_parse_loss_state(char *value, struct sy_loss_state *state, struct sy_error *err);
int sy_parse_overhead(char *value, struct sy_rate_overhead *overhead, struct sy_error *err);
int sy_parse_slot(char *value, struct sy_slot *slot, struct sy_error *err);

/* tc's tables of distributions have 16 bits, 8192 of them a jitter (sch_netem.c: NETEM_DIST_SCALE).
 */
#define SY_TABLE_JITTERS 4

/* The shortest and the longest time of one with a distribution, from its mean and jitter. */
void sy_slot_spread(struct sy_slot *slot);

/* What a packet of so many bytes takes of the rate: packet_time_ns() of sch_netem.c. */
int64_t sy_bytes_on_link(const struct sy_rate_overhead *overhead, int64_t bytes);

/* Without what is the default, from the right; `text` holds SY_MODEL_SIZE, and is returned. */
#define SY_MODEL_SIZE (6 * 24)
const char *sy_format_gemodel(const struct sy_gemodel *model, char *text);
const char *sy_format_loss_state(const struct sy_loss_state *state, char *text);
const char *sy_format_overhead(const struct sy_rate_overhead *overhead, char *text);
const char *sy_format_slot(const struct sy_slot *slot, char *text);

#endif
