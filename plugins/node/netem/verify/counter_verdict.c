#include "netem/verify/verify.h"

#include "base/json_document.h"
#include "netem/spec/loss_statistics.h"

#include <inttypes.h>
#include <stdio.h>

#define NEWER "known from kernels of 2026 on, which have struct tc_netem_xstats"

/* -1: the kernel does not count it. */
static int64_t read_counter(const json_t *counters, const char *key)
{
	json_t *value = json_object_get(counters, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static int64_t larger_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

struct sy_counted sy_netem_count_hits(const json_t *counters, const struct sy_netem *spec)
{
	int64_t sent = larger_of(0, read_counter(counters, "sent_packets"));
	int64_t dropped = larger_of(0, read_counter(counters, "dropped_packets"));
	int64_t marked = read_counter(counters, "marked_packets");
	struct sy_counted count = {dropped, sent + dropped, sent + dropped};

	if (!spec->has_ecn)
		return count;
	/* Until struct tc_netem_xstats came, sch_netem.c called a marked packet dropped, too. */
	if (marked < 0)
		count.least = larger_of(sent, dropped);
	else
		count.hits += marked;
	return count;
}

static json_t *make_share(int64_t hits, int64_t packets)
{
	double low, high;

	sy_wilson(hits, packets, &low, &high);
	return json_pack("{s:f,s:f,s:f,s:I}", "achieved", (double)hits / (double)packets, "low",
			 low, "high", high, "packets", (json_int_t)packets);
}

static void note_missing(json_t *conditions, const char *key, const char *reason)
{
	json_t *missing = json_object_get(conditions, "missing");

	(void)json_object_set_new(conditions, key, json_null());
	if (json_is_object(missing))
		(void)json_object_set_new(missing, key, json_string(reason));
}

void sy_netem_record_loss(json_t *conditions, const struct sy_counted *count)
{
	if (!count->packets)
		(void)json_object_set_new(conditions, "loss", json_null());
	else if (count->least < count->packets)
		note_missing(conditions, "loss",
			     "this kernel counts a packet that ecn= has marked as dropped and as "
			     "sent; " NEWER);
	else
		(void)json_object_set_new(conditions, "loss",
					  make_share(count->hits, count->packets));
}

/* One of them: how many packets it happened to (-1: not counted), of how many. */
struct chance {
	const char *key, *what;
	bool requested;
	int32_t ppb;
	int64_t hits, least, packets;
};

static int judge_chance(json_t *conditions, const struct chance *chance, char *reason, size_t size)
{
	struct sy_drops expected;
	char why[160];

	if (!chance->requested)
		return 0;
	if (chance->hits < 0) {
		(void)snprintf(why, sizeof(why),
			       "this kernel does not count packets that are %s; " NEWER,
			       chance->what);
		note_missing(conditions, chance->key, why);
		return 0;
	}
	(void)json_object_set_new(conditions, chance->key,
				  chance->packets > 0 ? make_share(chance->hits, chance->packets)
						      : json_null());
	expected = sy_hits_expected(chance->ppb / (double)SY_WHOLE_PPB, larger_of(0, chance->least),
				    larger_of(0, chance->packets));
	if (chance->hits >= expected.low && chance->hits <= expected.high)
		return 0;
	(void)snprintf(reason, size,
		       "%" PRId64 " of %" PRId64 " packets were %s (%.4g %%), asked were %.4g %%: "
		       "chance explains %" PRId64 " to %" PRId64 " (99.9 %%)",
		       chance->hits, chance->packets, chance->what,
		       100 * (double)chance->hits / (double)larger_of(1, chance->packets),
		       100 * expected.loss, expected.low, expected.high);
	return -1;
}

/* Which packets meet which chance: netem_enqueue() of sch_netem.c, Linux 7.2. Each copy comes to
 * the queue again and is not doubled again; what is lost is not spoilt; what was spoilt may not
 * fit.
 */
int sy_netem_judge_chances(json_t *conditions, const struct sy_netem *spec, char *reason,
			   size_t size)
{
	const json_t *counters = json_object_get(conditions, "counters");
	int64_t delivered = larger_of(0, read_counter(counters, "sent_packets")) +
			    larger_of(0, read_counter(counters, "waiting_packets"));
	int64_t dropped = larger_of(0, read_counter(counters, "dropped_packets")),
		came = delivered + dropped;
	int64_t doubled = read_counter(counters, "duplicated_packets");
	int64_t lost = larger_of(0, read_counter(counters, "lost_packets"));
	int64_t gone = lost + dropped < doubled ? lost + dropped : doubled;
	const struct chance chances[] = {
	    {"duplicate", "sent twice", spec->has_duplicate, spec->duplicate_ppb, doubled,
	     came - doubled, came - doubled + larger_of(0, gone)},
	    {"corrupt", "spoilt", spec->has_corrupt, spec->corrupt_ppb,
	     read_counter(counters, "corrupted_packets"), delivered, came},
	    {"reorder", "sent ahead", spec->has_reorder, spec->reorder_ppb,
	     read_counter(counters, "requeues"), delivered, delivered},
	};
	int result = 0;

	for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++)
		if (judge_chance(conditions, &chances[i], reason, size) < 0)
			result = -1;
	return result;
}
