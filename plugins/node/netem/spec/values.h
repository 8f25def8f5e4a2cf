/* Times, rates, percentages, counts and networks as text, for the specification and the policy.
 *
 * Reading is strict: the whole text, lower-case units, no sign, no exponent. Nothing passes through
 * a float, so that what is written reads as the same number. Errors say only what was expected; the
 * caller says where. */
#ifndef STEELYARD_NETEM_SPEC_VALUES_H
#define STEELYARD_NETEM_SPEC_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What the kinds, roles and needs of facts/netem_keys.def are in C. A value of kind K is a field of
 * struct sy_netem: SY_FIELD_K(id), declared by SY_DECLARE_K(id). */

enum sy_kind { SY_KIND_TIME, SY_KIND_WHOLE_MS, SY_KIND_PERCENT, SY_KIND_RATE, SY_KIND_COUNT };

#define SY_FIELD_TIME(id)     id##_us
#define SY_FIELD_WHOLE_MS(id) id##_us
#define SY_FIELD_PERCENT(id)  id##_ppb
#define SY_FIELD_RATE(id)     id##_bit_per_s
#define SY_FIELD_COUNT(id)    id##_packets

#define SY_DECLARE_TIME(id)	int64_t SY_FIELD_TIME(id);
#define SY_DECLARE_WHOLE_MS(id) int64_t SY_FIELD_WHOLE_MS(id);
#define SY_DECLARE_PERCENT(id)	int32_t SY_FIELD_PERCENT(id);
#define SY_DECLARE_RATE(id)	int64_t SY_FIELD_RATE(id);
#define SY_DECLARE_COUNT(id)	int64_t SY_FIELD_COUNT(id);
#define SY_DECLARE_OWN(id)

/* True when the key was requested by itself, by its role. */
#define SY_ASKED_FLAG(spec, id)	  ((spec)->has_##id)
#define SY_ASKED_PART(spec, id)	  false
#define SY_ASKED_PLACE(spec, id)  false
#define SY_ASKED_PLACES(spec, id) false

/* Only where the value is a number. */
#define SY_IF_NUMBER_TIME(...)	   __VA_ARGS__
#define SY_IF_NUMBER_WHOLE_MS(...) __VA_ARGS__
#define SY_IF_NUMBER_PERCENT(...)  __VA_ARGS__
#define SY_IF_NUMBER_RATE(...)	   __VA_ARGS__
#define SY_IF_NUMBER_COUNT(...)	   __VA_ARGS__
#define SY_IF_NUMBER_OWN(...)

#define SY_FLAG_FLAG(id) bool has_##id;
#define SY_FLAG_PART(id)
#define SY_FLAG_PLACE(id)
#define SY_FLAG_PLACES(id)

#define SY_WHOLE_PPB 1000000000 /* 100 % in parts per billion */

struct sy_network {
	int family;	     /* AF_INET, AF_INET6 */
	uint8_t address[16]; /* network byte order; host bits are 0 */
	int prefix;
};

#define SY_UNIT_SIZE 64 /* holds whatever is written here, with its NUL */

/* netem's 32-bit ticks of 64 ns (linux/pkt_sched.h: PSCHED_SHIFT) end at 274.8 s; kernels since
 * 4.15 have 64 bits, and nobody waits that long. */
#define SY_DELAY_MAX_US 274000000

/* INT_MAX ns: sch_netem.c, netem_change() caps it there for tabledist(). */
#define SY_JITTER_MAX_US 2147483

/* TCP_RTO_MAX of include/net/tcp.h; the kernel keeps rto_min in whole ms (ip-route(8)). */
#define SY_RTO_MAX_US  120000000
#define SY_RTO_STEP_US 1000

/* The kernel counts bytes (struct tc_ratespec); no port is faster than 1 Tbit/s. */
#define SY_RATE_STEP_BIT 8
#define SY_RATE_MAX_BIT	 1000000000000

/* `1.5ms`, or a bare 0. */
int sy_parse_time(const char *text, int64_t max_us, int64_t *us, struct sy_error *err);

/* `100mbit`: bit, kbit, mbit, gbit, powers of 1000 as in tc(8); whole bytes a second. */
int sy_parse_rate(const char *text, int64_t *bit_per_s, struct sy_error *err);

/* Whole milliseconds, at least one. */
int sy_parse_integer_ms(const char *text, int64_t *us, struct sy_error *err);

/* `0.1%`: 0 to 100, six decimals at most. */
int sy_parse_percent(const char *text, int32_t *ppb, struct sy_error *err);

/* Cut `text` at the first `separator`: what follows, or NULL when there is none. */
char *sy_cut(char *text, char separator);

/* A whole number from `min` to `max`. */
int sy_parse_count(const char *text, int64_t min, int64_t max, int64_t *count,
		   struct sy_error *err);

/* `10.0.0.0/8`, `2001:db8::/32`, or one address. Host bits must be 0. */
int sy_parse_network(const char *text, struct sy_network *network, struct sy_error *err);

/* All write to `text`, which holds SY_UNIT_SIZE, and return it: whole numbers of the largest unit
 * that loses nothing; a network of one address without its prefix. */
const char *sy_format_kind(enum sy_kind kind, int64_t value, char *text);
const char *sy_format_time(int64_t us, char *text);
const char *sy_format_rate(int64_t bit_per_s, char *text);
const char *sy_format_percent(int32_t ppb, char *text);
const char *sy_format_network(const struct sy_network *network, char *text);

/* True when all of `inner` is in `outer`. */
bool sy_network_contains(const struct sy_network *outer, const struct sy_network *inner);

#endif
