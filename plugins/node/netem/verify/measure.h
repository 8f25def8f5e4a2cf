/* Was a condition really there? Round-trip times and counters are put into the document of
 * docs/formats.md part 9, and judged from there alone. How and why: docs/netem.md. */
#ifndef STEELYARD_NETEM_VERIFY_MEASURE_H
#define STEELYARD_NETEM_VERIFY_MEASURE_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/kernel/qdisc_counters.h"
#include "netem/spec/spec.h"
#include "netem/verify/verdict.h"

struct sy_measure {
	const char *peer;	     /* an address, as text; NULL: nobody to ask */
	const struct sy_netem *spec; /* how long an answer may take, and what is shaped at all */
	int count;		     /* 1 to SY_PING_MAX; fewer are sent at a low rate */
	uint32_t priority; /* of our packets (SO_PRIORITY), a class such as 0x57e10002; 0 */
	int64_t until_us;  /* by CLOCK_MONOTONIC: what may take longer is not begun; 0: no limit */
};

/* Round-trip times to the peer: `{sent, received, min_s, median_s, mean_s, sd_s, max_s}`, a new
 * reference; sd_s is null for one answer. With `port=` in the specification, which leaves ICMP
 * alone, it is the time until a TCP connection to the first port is accepted or refused.
 * -1: nothing could be measured; the sentence says why, *rtt is JSON's null.
 * Takes 2 × (delay + 4 × jitter + slot) + 0.7 s at most, a few ms where nothing is delayed. */
int sy_netem_measure(const struct sy_measure *measure, json_t **rtt, struct sy_error *err);

/* The same into the document: `rtt.MOMENT` (before, during_start, during_end, after), or null there
 * and the reason under "rtt.MOMENT" of the document's `missing`. What is out of tolerance is
 * measured again, three times at most; the fastest try counts, and a note says so. The time is
 * added to `verify_s`. Where time is short, it is measured less often, or not at all. */
void sy_netem_measure_into(json_t *conditions, const char *moment,
			   const struct sy_measure *measure);

#endif
