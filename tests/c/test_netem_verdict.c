/* The verdict on a run: every rule is seen to condemn and to let pass. */
#include "netem_documents.h"

#include "netem/verify/verify.h"

static void test_delay(void)
{
	judge_new(document(0.2, 50.3, 0.2, 100, 0), "delay=50ms", NULL);
	judge_new(document(0.2, 44.9, 0.2, 100, 0), "delay=50ms",
		  "44.70 ms longer than before (44.90 ms beside 0.20 ms, 25 answers); asked were "
		  "50.00 ms, tolerance 5.02 ms");
	judge_new(document(0.2, 55.5, 0.2, 100, 0), "delay=50ms", "at the start");
	judge_new(document(0.2, 0.2, 0.2, 100, 0), "delay=1ms", NULL);
	judge_new(document(0.2, 0.2, 0.2, 100, 0), "delay=2ms", "asked were 2.00 ms");
	judge_new(document(20, 70, 20, 100, 0), "delay=50ms,direction=ingress", NULL);
	judge_new(document(20, 70, 20, 100, 0), "delay=50ms,direction=both", "asked were 100.00");
	judge_new(document(20, 120, 20, 100, 0), "delay=50ms,direction=both", NULL);
	judge_new(document(-1, 50, 0.2, 100, 0), "delay=10ms", NULL);
	judge_new(document(0.2, 3, 0.2, 100, 0), "loss=0%", "asked were 0.00 ms");
}

static void test_what_blurs_a_delay(void)
{
	/* 4.12 × 10 ms / √25 = 8.25 ms beside 5.02 ms */
	judge_new(document(0.2, 63.2, 0.2, 100, 0), "delay=50ms~10ms/normal", NULL);
	judge_new(document(0.2, 63.8, 0.2, 100, 0), "delay=50ms~10ms/normal", "tolerance 13.27 ms");
	judge_new(document(0.2, 66.4, 0.2, 100, 0), "delay=50ms~10ms/pareto", NULL);
	judge_new(document(0.2, 0.3, 0.2, 100, 0), "delay=50ms,reorder=60%", NULL);
	/* A frame takes 78.4 ms at 10 kbit/s. */
	judge_new(document(0.2, 78.6, 0.2, 100, 0), "rate=10kbit", NULL);
	judge_new(document(0.2, 90, 0.2, 100, 0), "rate=10kbit", "tolerance 79.40 ms");
}

static void test_the_end(void)
{
	json_t *conditions = document(0.2, 50.2, 0.2, 100, 0);
	json_t *rtts = json_object_get(conditions, "rtt");

	(void)json_object_set_new(rtts, "during_end", rtt(0.2));
	judge_new(conditions, "delay=50ms", "at the end");
	conditions = document(0.2, 50.2, 0.2, 100, 0);
	rtts = json_object_get(conditions, "rtt");
	(void)json_object_set_new(rtts, "during_end", rtt(900));
	(void)judge(conditions, "delay=50ms,rate=10mbit", NULL); /* a queue stood */
	judge_new(conditions, "delay=50ms", "at the end");
}

static const char *first_note(json_t *conditions)
{
	return json_string_value(json_array_get(json_object_get(conditions, "notes"), 0));
}

/* Whether it is undone, tc's tree says; the peer may have become slower for reasons of its own. */
static void test_after(void)
{
	json_t *conditions = document(0.2, 50.2, 13.5, 100, 0);

	(void)judge(conditions, "delay=50ms", NULL);
	ok(json_is_true(json_object_get(conditions, "undone")),
	   "a slower peer: undone all the same");
	is_string(first_note(conditions),
		  "after undoing the least round-trip time was 13.50 ms, 13.30 ms longer than "
		  "before: the peer or the way to it was slower, or busy",
		  "and told in its own words");
	(void)json_object_set_new(conditions, "undone", json_false());
	(void)judge(conditions, "delay=50ms", NULL);
	ok(json_is_false(json_object_get(conditions, "undone")), "tc's word stands");
	json_decref(conditions);
	conditions = document(5, 55, 4, 100, 0);
	(void)judge(conditions, "delay=50ms", NULL);
	ok(json_is_true(json_object_get(conditions, "undone")), "a faster network is undone");
	json_decref(conditions);
}

static json_t *at_the_start(json_t *before, json_t *during)
{
	json_t *conditions = document(-1, -1, -1, 100, 0);
	json_t *rtts = json_object_get(conditions, "rtt");

	(void)json_object_set_new(rtts, "before", before);
	(void)json_object_set_new(rtts, "during_start", during);
	return conditions;
}

/* A busy node delays some of the echoes, or most; the fastest shows the delay. */
static void test_a_busy_node_is_no_wrong_delay(void)
{
	json_t *conditions = at_the_start(spread(0.2, 40.7), spread(50.3, 50.4));

	(void)judge(conditions, "delay=50ms", NULL);
	is_string(first_note(conditions),
		  "before the node, its peer or the way was busy: half of the echoes took 40.70 ms "
		  "and more, the fastest, which counts, 0.20 ms",
		  "busy before");
	json_decref(conditions);
	conditions = at_the_start(spread(0.2, 0.3), spread(50.3, 91));
	(void)judge(conditions, "delay=50ms", NULL);
	is_string(first_note(conditions),
		  "at the start the node, its peer or the way was busy: half of the echoes took "
		  "91.00 ms and more, the fastest, which counts, 50.30 ms",
		  "busy meanwhile");
	json_decref(conditions);
	judge_new(at_the_start(spread(0.2, 0.3), spread(40.3, 50.3)), "delay=50ms",
		  "at the start the least round-trip time was 40.10 ms longer than before");
	judge_new(at_the_start(spread(0.2, 40), spread(40.3, 50.3)), "delay=50ms", "40.10 ms");
	judge_new(at_the_start(spread(0.2, 0.3), spread(60.3, 61)), "delay=50ms", "60.10 ms");
	/* Each packet of a jitter waits another time: medians, of which the first may be busy. */
	judge_new(at_the_start(spread(0.2, 0.3), spread(33, 50.4)), "delay=50ms~10ms", NULL);
	judge_new(at_the_start(spread(0.2, 40), spread(33, 50.4)), "delay=50ms~10ms", NULL);
	judge_new(at_the_start(spread(0.2, 0.3), spread(50, 90)), "delay=50ms~10ms",
		  "the median round-trip time was 89.70 ms");
	judge_new(at_the_start(spread(0.2, 5), spread(10, 20)), "delay=50ms~10ms", "19.80 ms");
	judge_new(at_the_start(spread(0.2, 0.3), spread(0.2, 50.4)), "delay=50ms,reorder=10%",
		  NULL);
}

/* Three tries of one moment, in ms: the verdict on them does not depend on their order. */
static void tries(const char *text, const double ms[3], const char *reason)
{
	for (int first = 0; first < 3; first++) {
		json_t *conditions = at_the_start(rtt(0.2), json_null());
		struct sy_netem spec;

		(void)sy_netem_parse(text, &spec, NULL);
		for (int i = 0; i < 3; i++)
			sy_netem_keep_fastest(conditions, &spec, "during_start",
					      rtt(ms[(first + i) % 3]));
		judge_new(conditions, text, reason);
	}
}

static void test_the_best_of_all_tries_counts(void)
{
	tries("delay=50ms", (const double[]){91, 50.3, 66}, NULL);
	tries("delay=50ms", (const double[]){75, 60.3, 91}, "60.10 ms");
	/* A delay that is too short, held up just so that one try looks right. */
	tries("delay=50ms", (const double[]){50.3, 40.3, 66}, "40.10 ms");
	tries("delay=50ms~1ms", (const double[]){91, 50.3, 66}, NULL);
	tries("delay=50ms~1ms", (const double[]){50.3, 40.3, 66}, "40.10 ms");
}

static void test_qdisc(void)
{
	json_t *conditions = document(-1, -1, -1, 100, 0);
	json_t *device = json_array_get(json_object_get(conditions, "devices"), 0);

	(void)json_object_set_new(device, "kernel_end", json_null());
	judge_new(conditions, "delay=50ms", "the qdisc of eth0 was gone");
	conditions = document(-1, -1, -1, 100, 0);
	device = json_array_get(json_object_get(conditions, "devices"), 0);
	(void)json_object_set_new(device, "kernel_end", json_string("qdisc netem 5802: delay 5ms"));
	judge_new(conditions, "delay=50ms", "at the end 'qdisc netem 5802: delay 5ms'");
	conditions = document(-1, -1, -1, 100, 0);
	device = json_array_get(json_object_get(conditions, "devices"), 0);
	(void)json_object_del(device, "kernel_end");
	judge_new(conditions, "delay=50ms", NULL);
}

static void test_drops(void)
{
	json_t *conditions = document(-1, -1, -1, 9900, 100);
	json_t *loss;

	(void)judge(conditions, "loss=1%", NULL);
	loss = json_object_get(conditions, "loss");
	ok(json_real_value(json_object_get(loss, "achieved")) == 0.01, "1 %% achieved");
	is_int(json_integer_value(json_object_get(loss, "packets")), 10000, "of 10,000");
	json_decref(conditions);
	judge_new(document(-1, -1, -1, 9999, 1), "delay=50ms", "1 of 10000 packets were dropped");
	judge_new(document(-1, -1, -1, 9999, 1), "delay=50ms,limit=10", NULL);
	judge_new(document(-1, -1, -1, 9865, 135), "loss=1%", "chance explains 69 to 134");
	judge_new(document(-1, -1, -1, 9932, 68), "loss=1%", "68 of 10000 packets were lost");
	judge_new(document(-1, -1, -1, 9866, 134), "loss=1%", NULL);
	judge_new(document(-1, -1, -1, 9931, 69), "loss=1%", NULL);
	judge_new(document(-1, -1, -1, 5000, 5000), "loss=1%,limit=10", NULL);
	judge_new(document(-1, -1, -1, 0, 100), "loss=100%", NULL);
	judge_new(document(-1, -1, -1, 1, 99), "loss=100%", "lost");
	/* 100,000 packets, 5 % of them lost, 50 % doubled. */
	judge_new(document(-1, -1, -1, 142500, 5000), "loss=5%,duplicate=50%", NULL);
	judge_new(document(-1, -1, -1, 149000, 1000), "loss=5%,duplicate=50%", "lost");
	conditions = document(-1, -1, -1, 0, 0);
	(void)judge(conditions, "loss=1%", NULL);
	ok(json_is_null(json_object_get(conditions, "loss")), "no packet, no loss");
	json_decref(conditions);
}

/* Drops under a requested rate are reported and not condemned. */
static void test_full_queue(void)
{
	json_t *conditions = document(-1, -1, -1, 9900, 100), *device;

	device = json_array_get(json_object_get(conditions, "devices"), 0);
	(void)json_object_set_new(device, "limit_packets", json_integer(1000));
	(void)judge(conditions, "rate=10mbit", NULL);
	is_string(
	    json_string_value(json_array_get(json_object_get(conditions, "notes"), 0)),
	    "the queue of 1000 packets was full 100 times, as a link of that rate does; limit= "
	    "changes it",
	    "its number is told");
	json_decref(conditions);
	conditions = document(-1, -1, -1, 5000, 5000);
	(void)judge(conditions, "loss=1%,rate=10mbit", NULL);
	is_string(json_string_value(json_array_get(json_object_get(conditions, "notes"), 0)),
		  "the queue of 0 packets was full about 4900 times, as a link of that rate does; "
		  "limit= changes it",
		  "without what loss= has dropped");
	json_decref(conditions);
	judge_new(document(-1, -1, -1, 9932, 68), "loss=1%,rate=10mbit", "68 of 10000 packets");
	judge_new(document(-1, -1, -1, 9866, 134), "loss=1%,rate=10mbit", NULL);
	judge_new(document(-1, -1, -1, 9865, 135), "loss=1%", "135 of 10000 packets were lost");
}

static void test_slots(void)
{
	judge_new(document(0.2, 0.3, 0.2, 100, 0), "slot=10ms:20ms", NULL);
	judge_new(document(0.2, 20.3, 0.2, 100, 0), "slot=10ms:20ms", NULL);
	judge_new(document(0.2, 25, 0.2, 100, 0), "slot=10ms:20ms",
		  "asked were 0.00 ms and the time to the next slot, tolerance 1.00 ms");
	judge_new(document(0.2, 15, 0.2, 100, 0), "delay=20ms,slot=10ms", "asked were 20.00 ms");
	/* An echo of 98 bytes and 1402 more takes 12 ms at 1 mbit. */
	judge_new(document(0.2, 12.2, 0.2, 100, 0), "rate=1mbit:1402", NULL);
	judge_new(document(0.2, 14, 0.2, 100, 0), "rate=1mbit:1402", "tolerance 13.00 ms");
}

static bool holds(json_t *conditions, const char *moment)
{
	struct sy_netem spec;
	bool answer = sy_netem_parse("delay=50ms", &spec, NULL) == 0 &&
		      sy_netem_is_rtt_tolerated(conditions, &spec, moment);

	json_decref(conditions);
	return answer;
}

static void test_what_is_measured_again(void)
{
	json_t *busy = at_the_start(spread(0.2, 20), rtt(70));

	ok(holds(document(0.2, 50.3, 0.2, 0, 0), "during_start"), "a delay as asked: once");
	ok(!holds(document(0.2, 61, 0.2, 0, 0), "during_start"), "held up: again");
	ok(holds(document(0.2, 61, 0.2, 0, 0), "after"), "the node is quiet afterwards: once");
	ok(!holds(document(0.2, 50.3, 9, 0, 0), "after"), "it is not: again");
	ok(holds(document(-1, 50, -1, 0, 0), "during_end"), "nothing to compare with: once");
	ok(!holds(busy, "before"), "a median far from the fastest: again");
}

int main(void)
{
	test_what_is_measured_again();
	test_delay();
	test_what_blurs_a_delay();
	test_the_end();
	test_after();
	test_a_busy_node_is_no_wrong_delay();
	test_the_best_of_all_tries_counts();
	test_qdisc();
	test_drops();
	test_full_queue();
	test_slots();
	return done_testing();
}
