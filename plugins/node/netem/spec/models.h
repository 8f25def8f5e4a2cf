/* Values of a specification that are several numbers, with `:` between them. All may cut up their
 * text; errors say only what was expected. */
#ifndef STEELYARD_NETEM_SPEC_MODELS_H
#define STEELYARD_NETEM_SPEC_MODELS_H

#include "base/error.h"
#include "netem/spec/spec.h"

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
