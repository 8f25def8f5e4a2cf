/* Room netem/verify: was the condition really there, and may the run be averaged? The rules and
 * their formulas: docs/netem.md, "What is verified".
 *
 * Two halves meet in one document (docs/formats.md part 9). measurement.c puts round-trip times
 * into it at four moments: before, at the start, at the end, and after undoing; ping.c sends the
 * echoes. verdict.c and counter_verdict.c judge the document: added delay, drops, loss, duplicates,
 * and whether our qdisc was still there. They measure nothing.
 *
 * It promises: what the document does not have is not judged, and a reason is in `missing`. A run
 * once found invalid stays so, with its first reason. Whatever holds up an echo only adds to its
 * time, so a result out of tolerance is measured again, three times at most, and the fastest
 * counts. A limit of chance is 99.9 %: one good run in a thousand is condemned.
 *
 * It does not verify that a job reaches `rate`, and changes nothing in the kernel. */
#ifndef STEELYARD_NETEM_VERIFY_VERIFY_H
#define STEELYARD_NETEM_VERIFY_VERIFY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/kernel/qdisc_snapshot.h"
#include "netem/spec/spec.h"

#define SY_MEASURE_COUNT 25 /* echo requests by default */

/* Set `loss`, `valid`, `invalid_reason`, `notes`. Whether it is undone is not judged by round-trip
 * times: tc's tree alone says so (netem/undo.h). May be called again as the document grows (after
 * applying, at the end): a run once found invalid stays so, with its first reason; one set by the
 * caller stays as well.
 *
 * Read are `rtt`, `counters`, and of `devices[]`: `device`, `kernel`, and `kernel_end`, what tc
 * says of our own qdisc there at the end in the same words; null: it is gone; absent: not known. */
void sy_netem_judge(json_t *conditions, const struct sy_netem *spec);

/* One more try at this moment (before, during_start, during_end, after): whatever holds up echoes
 * adds to them, so the fastest try is kept and the others are dropped. Steals `rtt`. */
void sy_netem_keep_fastest(json_t *conditions, const struct sy_netem *spec, const char *moment,
			   json_t *rtt);

/* True when the measurement at this moment is within the tolerance, or is not judged; `before`:
 * true when the median is close to the minimum. */
bool sy_netem_is_rtt_tolerated(json_t *conditions, const struct sy_netem *spec, const char *moment);

/* Lost packets (with ecn=: lost or marked) and of how many. */
struct sy_counted {
	int64_t hits, packets;
	int64_t least; /* so many there were at least: less than `packets` where some may have been
			* counted twice */
};

struct sy_counted sy_netem_count_hits(const json_t *counters, const struct sy_netem *spec);

/* `loss` of the document, or null; why, where there were packets. */
void sy_netem_record_loss(json_t *conditions, const struct sy_counted *count);

/* `duplicate`, `corrupt`, `reorder` of the document, each where it was requested: `{achieved,
 * low, high, packets}`, or null with the reason in `missing`. -1: one is beyond chance (99.9 %),
 * `reason` is the sentence; without a counter nothing is judged. */
int sy_netem_judge_chances(json_t *conditions, const struct sy_netem *spec, char *reason,
			   size_t size);

/* Was a condition really there? Round-trip times and counters are put into the document of
 * docs/formats.md part 9, and judged from there alone. How and why: docs/netem.md. */

struct sy_measure {
	const char *peer;	     /* an address, as text; NULL: nobody to ask */
	const struct sy_netem *spec; /* how long an answer may take, and what is shaped at all */
	int count;		     /* 1 to SY_PING_MAX; fewer are sent at a low rate */
	uint32_t priority; /* of our packets (SO_PRIORITY), a class such as 0x57e10002; 0 */
	int64_t until_us;  /* by CLOCK_MONOTONIC: what may take longer is not begun; 0: no limit */
};

/* Round-trip times to the peer: `{sent, received, min_s, median_s, mean_s, sd_s, max_s}`, a new
 * reference; sd_s is null for one answer. With `port=` in the specification, which leaves ICMP
 * alone, it is the time until a TCP connection to the first port is accepted or refused. -1:
 * nothing could be measured; `err` has the reason, *rtt is JSON's null. Takes 2 × (delay + 4 ×
 * jitter + slot) + 0.7 s at most, a few ms where nothing is delayed. */
int sy_netem_measure(const struct sy_measure *measure, json_t **rtt, struct sy_error *err);

/* The same into the document: `rtt.MOMENT` (before, during_start, during_end, after), or null
 * there and the reason under "rtt.MOMENT" of the document's `missing`. A result out of tolerance
 * is measured again, three times at most; the fastest try counts, and a note states it. The time
 * is added to `verify_s`. Where time is short, it is measured less often, or not at all. */
void sy_netem_measure_into(json_t *conditions, const char *moment,
			   const struct sy_measure *measure);

/* Echo requests, all in flight together, and how long each answer took. */

#define SY_PING_MAX   100
#define SY_ECHO_BYTES 98 /* an echo request of IPv4 with its Ethernet header */

struct sy_ping {
	const char *peer;  /* IPv4 or IPv6 address as text */
	int port;	   /* 0: ICMP echo; else TCP: accepted or refused, both answer */
	int count;	   /* 1 to SY_PING_MAX */
	int64_t gap_us;	   /* between two */
	int64_t wait_us;   /* for answers after the last one */
	uint32_t priority; /* SO_PRIORITY; above 6 it needs CAP_NET_ADMIN */
};

struct sy_pongs {
	int sent, received;
	double s[SY_PING_MAX]; /* the first `received`: ascending, seconds */
};

/* 0, answers or none; -1: nothing could be sent. ICMP needs CAP_NET_RAW, or a group within
 * net.ipv4.ping_group_range (icmp(7)). An answer has the kernel's time of arrival
 * (SO_TIMESTAMPNS, socket(7)) where the kernel reports it. Once half have come, the wait is at
 * most twice the longest so far. */
int sy_ping(const struct sy_ping *ping, struct sy_pongs *pongs, struct sy_error *err);

#endif
