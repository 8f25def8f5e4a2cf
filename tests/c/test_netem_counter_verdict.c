/* Requested chances and counts: intervals, chains, and what has no counter. */
#include "netem_documents.h"

#include "netem/spec/loss_statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void test_bursts(void)
{
	/* In the bad state 1/11 of the time: 9.09 %. */
	judge_new(document(-1, -1, -1, 90909, 9091), "loss=gemodel:1%:10%", NULL);
	judge_new(document(-1, -1, -1, 90909, 9700), "loss=gemodel:1%:10%", NULL);
	judge_new(document(-1, -1, -1, 98000, 2000), "loss=gemodel:1%:10%", "asked were 9.091 %");
	judge_new(document(-1, -1, -1, 100, 0), "loss=gemodel:1%:10%", NULL);
}

static void test_first_reason_stands(void)
{
	json_t *conditions = document(0.2, 0.2, 0.2, 100, 0);

	(void)judge(conditions, "delay=50ms", "at the start");
	(void)json_object_set_new(json_object_get(conditions, "counters"), "dropped_packets",
				  json_integer(50));
	(void)judge(conditions, "delay=50ms", "at the start");
	json_decref(conditions);
}

/* All probabilities of few packets, added up one by one. */
static double slow_tail(int hits, int of, double p)
{
	double sum = 0;

	for (int k = 0; k <= of; k++) {
		double ways = 1;

		for (int i = 0; i < k; i++)
			ways = ways * (of - i) / (i + 1);
		if (hits < of * p ? k <= hits : k >= hits)
			sum += ways * pow(p, k) * pow(1 - p, of - k);
	}
	return sum;
}

static void test_statistics(void)
{
	double low, high, variance;
	struct sy_gemodel independent = {100000000, 900000000, SY_WHOLE_PPB, 0};
	int wrong = 0;

	/* 10 of 100: 0.0552 to 0.1744 (Newcombe, Statistics in Medicine 17 (1998) 857: method 3) */
	sy_wilson(10, 100, &low, &high);
	ok(fabs(low - 0.05523) < 1e-5 && fabs(high - 0.17437) < 1e-5, "Wilson: %g to %g", low,
	   high);
	sy_wilson(0, 10, &low, &high);
	ok(low == 0 && fabs(high - 0.27753) < 1e-5, "Wilson, none of 10: up to %g", high);
	for (int hits = 0; hits <= 40; hits++)
		wrong +=
		    fabs(sy_binomial_tail(hits, 40, 0.3) / slow_tail(hits, 40, 0.3) - 1) > 1e-9;
	is_int(wrong, 0, "the binomial tail is the sum of its probabilities");
	ok(sy_binomial_tail(100000000, 10000000000, 0.01) > 0.49, "also of 10^10 packets");
	/* With r = 1 - p the states do not depend on each other: the binomial's variance. */
	ok(fabs(sy_gemodel_loss(&independent, &variance) - 0.1) < 1e-12, "mean of the chain");
	ok(fabs(variance - 0.09) < 1e-12, "variance of the chain");
}

static double chance(void)
{
	return (double)random() / RAND_MAX;
}

/* How many of so many packets the Gilbert-Elliott chain 1%:10%:70%:0.1% loses. */
static int throw_gemodel(int packets)
{
	int bad = 0, lost = 0;

	for (int i = 0; i < packets; i++) {
		lost += chance() < (bad ? 0.7 : 0.001);
		bad ^= chance() < (bad ? 0.1 : 0.01);
	}
	return lost;
}

/* The same of state:2%:20%:30%:40%:1%, as the graph of tc-netem(8) has it. */
static int throw_states(int packets)
{
	/* From state 1 to 4 (row) to state 1 to 4 (column). */
	static const double to[4][4] = {
	    {0.97, 0, 0.02, 0.01}, {0, 0.6, 0.4, 0}, {0.2, 0.3, 0.5, 0}, {1, 0, 0, 0}};
	int state = 0, lost = 0;

	for (int i = 0; i < packets; i++) {
		double remaining = chance();
		int next = 0;

		while (next < 3 && remaining >= to[state][next])
			remaining -= to[state][next++];
		state = next;
		lost += state >= 2;
	}
	return lost;
}

/* The chain, thrown: of 99.9 % intervals about one in a thousand misses; of intervals half as wide
 * one in ten does. */
static void test_chain_by_throwing(const char *text, int (*throw)(int packets), int64_t widest)
{
	struct sy_netem spec;
	int outside = 0, outside_half = 0, packets = 20000;
	struct sy_drops drops;

	(void)sy_netem_parse(text, &spec, NULL);
	drops = sy_drops_expected(&spec, packets, packets);
	srandom(1);
	for (int run = 0; run < 400; run++) {
		int lost = throw(packets);
		int64_t middle = (drops.low + drops.high) / 2, half = (drops.high - drops.low) / 4;

		outside += lost < drops.low || lost > drops.high;
		outside_half += lost < middle - half || lost > middle + half;
	}
	ok(drops.judged && outside <= 4, "%s: %d of 400 runs outside of %" PRId64 " to %" PRId64,
	   text, outside, drops.low, drops.high);
	ok(outside_half >= 20 && outside_half <= 60, "%d of 400 outside of half of it",
	   outside_half);
	ok(drops.high - drops.low < widest, "and the interval is not all there is");
}

/* What newer kernels count, of a document in which so many packets were sent and dropped. */
static json_t *counted(int64_t sent, int64_t dropped, int64_t lost, int64_t doubled, int64_t spoilt)
{
	json_t *conditions = document(-1, -1, -1, sent, dropped);
	json_t *counters = json_object_get(conditions, "counters");

	(void)json_object_set_new(conditions, "missing", json_object());
	(void)json_object_set_new(counters, "lost_packets", json_integer(lost));
	(void)json_object_set_new(counters, "duplicated_packets", json_integer(doubled));
	(void)json_object_set_new(counters, "corrupted_packets", json_integer(spoilt));
	(void)json_object_set_new(counters, "marked_packets", json_integer(0));
	return conditions;
}

static double achieved(json_t *conditions, const char *key)
{
	return json_real_value(json_object_get(json_object_get(conditions, key), "achieved"));
}

/* 10,000 packets, of which chance doubles or spoils 100: 69 to 134, as of losses above. */
static void test_chances(void)
{
	json_t *conditions = counted(10100, 0, 0, 100, 0);

	(void)judge(conditions, "duplicate=1%", NULL);
	ok(achieved(conditions, "duplicate") == 0.01, "1 %% of 10,000 originals");
	ok(!json_object_get(conditions, "corrupt"), "nothing of what was not asked");
	json_decref(conditions);
	judge_new(counted(10134, 0, 0, 134, 0), "duplicate=1%", NULL);
	judge_new(counted(10135, 0, 0, 135, 0), "duplicate=1%",
		  "135 of 10000 packets were sent twice (1.35 %), asked were 1 %: chance explains "
		  "69 to 134 (99.9 %)");
	judge_new(counted(10068, 0, 0, 68, 0), "duplicate=1%",
		  "68 of 10000 packets were sent twice");
	judge_new(counted(10000, 0, 0, 0, 69), "corrupt=1%", NULL);
	judge_new(counted(10000, 0, 0, 0, 68), "corrupt=1%", "68 of 10000 packets were spoilt");
	judge_new(counted(10000, 0, 0, 0, 1), "corrupt=0%", "1 of 10000 packets were spoilt");
	/* A tenth is lost before it can be spoilt: 900 of 9000, or at most 1000 of 10000. */
	judge_new(counted(9000, 1000, 1000, 0, 900), "loss=10%,corrupt=10%", NULL);
	judge_new(counted(9000, 1000, 1000, 0, 790), "loss=10%,corrupt=10%", "were spoilt");
	conditions = document(-1, -1, -1, 10000, 0);
	(void)json_object_set_new(json_object_get(conditions, "counters"), "requeues",
				  json_integer(135));
	judge_new(conditions, "delay=1ms,reorder=1%", "135 of 10000 packets were sent ahead");
}

static void test_chances_not_counted(void)
{
	json_t *conditions = document(-1, -1, -1, 10000, 0);

	(void)json_object_set_new(conditions, "missing", json_object());
	(void)judge(conditions, "duplicate=1%", NULL);
	ok(json_is_null(json_object_get(conditions, "duplicate")), "null where nobody counts");
	is_string(
	    json_string_value(json_object_get(json_object_get(conditions, "missing"), "duplicate")),
	    "this kernel does not count packets that are sent twice; known from kernels of "
	    "2026 on, which have struct tc_netem_xstats",
	    "and the reason");
	json_decref(conditions);
}

static void test_marks(void)
{
	json_t *conditions = counted(10000, 0, 0, 0, 0);

	(void)json_object_set_new(json_object_get(conditions, "counters"), "marked_packets",
				  json_integer(100));
	(void)judge(conditions, "loss=1%,ecn=yes", NULL);
	ok(achieved(conditions, "loss") == 0.01, "a marked packet counts as lost");
	json_decref(conditions);
	judge_new(counted(10000, 0, 0, 0, 0), "loss=1%,ecn=yes", "were lost or marked");
	/* Older kernels: 100 of 10,000 marked count as 100 dropped and 10,000 sent. */
	conditions = document(-1, -1, -1, 10000, 100);
	(void)json_object_set_new(conditions, "missing", json_object());
	(void)judge(conditions, "loss=1%,ecn=yes", NULL);
	ok(json_is_null(json_object_get(conditions, "loss")), "how many were lost is not known");
	json_decref(conditions);
	judge_new(document(-1, -1, -1, 10000, 10000), "loss=100%,ecn=yes", NULL);
	judge_new(document(-1, -1, -1, 10000, 200), "loss=1%,ecn=yes", "lost or marked");
}

int main(void)
{
	test_bursts();
	test_first_reason_stands();
	test_statistics();
	test_chain_by_throwing("loss=gemodel:1%:10%:70%:0.1%", throw_gemodel, 1100);
	test_chain_by_throwing("loss=state:2%:20%:30%:40%:1%", throw_states, 1500);
	test_chances();
	test_chances_not_counted();
	test_marks();
	return done_testing();
}
