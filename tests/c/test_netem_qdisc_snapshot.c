/* What the kernel reports of our qdiscs, read back into a specification: messages made of bytes. */
#include "tap.h"

#include "netem/kernel/qdisc_snapshot.h"
#include "netem/spec/spec.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define PERCENT 42949673u /* of a chance of the kernel's, of which 2^32 - 1 is the whole */

static _Alignas(4) uint8_t options[512];
static size_t used;

static void add(unsigned short type, const void *data, size_t size)
{
	struct rtattr head = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = type};

	memcpy(options + used, &head, sizeof(head));
	memcpy(options + used + RTA_LENGTH(0), data, size);
	used += RTA_SPACE(size);
}

/* The options of a netem of 1000 packets, to which attributes are added. */
static void begin(uint32_t loss, uint32_t duplicate)
{
	struct tc_netem_qopt basic = {.limit = 1000, .loss = loss, .duplicate = duplicate};

	memset(options, 0, sizeof(options));
	memcpy(options, &basic, sizeof(basic));
	used = RTA_ALIGN(sizeof(basic));
}

/* The request, with everything that is put into the message read back. */
static void read_back(const char *kind, const char *requested, const char *expected)
{
	struct sy_qdisc qdisc = {.options = options, .options_size = used};
	char text[SY_NETEM_SIZE];
	struct sy_netem spec;
	struct sy_error err;

	(void)snprintf(qdisc.kind, sizeof(qdisc.kind), "%s", kind);
	if (!ok(sy_netem_parse(requested, &spec, &err) == 0, "asked: %s", requested))
		return;
	sy_qdisc_read_spec(&qdisc, &spec);
	(void)sy_netem_format(&spec, text);
	is_string(text, expected, "what the kernel has");
}

static void test_chances(void)
{
	struct tc_netem_corrupt corrupt = {.probability = 3 * PERCENT};
	struct tc_netem_reorder reorder = {.probability = 4 * PERCENT};
	int64_t delay_ns = 5000000;

	begin(PERCENT, 2 * PERCENT);
	read_back("netem", "loss=1%,duplicate=2%", "loss=1%,duplicate=2%");
	read_back("netem", "loss=5%,duplicate=2%", "loss=1%,duplicate=2%");
	read_back("netem", "loss=1%,duplicate=5%", "loss=1%,duplicate=2%");
	begin(0, 0);
	add(TCA_NETEM_CORRUPT, &corrupt, sizeof(corrupt));
	read_back("netem", "corrupt=3%", "corrupt=3%");
	read_back("netem", "corrupt=0.01%", "corrupt=3%");
	begin(0, 0);
	add(TCA_NETEM_LATENCY64, &delay_ns, sizeof(delay_ns));
	add(TCA_NETEM_REORDER, &reorder, sizeof(reorder));
	read_back("netem", "delay=5ms,reorder=4%", "delay=5ms,reorder=4%");
	read_back("netem", "delay=5ms,reorder=25%", "delay=5ms,reorder=4%");
}

static void test_times_and_rates(void)
{
	struct tc_netem_rate slow = {.rate = 1250000}, fast = {.rate = UINT32_MAX};
	int64_t delay_ns = 50000400, jitter_ns = 5000000;
	uint64_t wide = 12500000000;

	begin(0, 0);
	add(TCA_NETEM_LATENCY64, &delay_ns, sizeof(delay_ns));
	add(TCA_NETEM_JITTER64, &jitter_ns, sizeof(jitter_ns));
	add(TCA_NETEM_RATE, &slow, sizeof(slow));
	read_back("netem", "delay=50ms~5ms,rate=10mbit", "delay=50ms~5ms,rate=10mbit");
	read_back("netem", "delay=51ms~6ms,rate=11mbit", "delay=50ms~5ms,rate=10mbit");
	read_back("netem", "delay=50ms~5ms,rate=10mbit,limit=7",
		  "delay=50ms~5ms,rate=10mbit,limit=1000");
	begin(0, 0);
	add(TCA_NETEM_RATE, &fast, sizeof(fast));
	add(TCA_NETEM_RATE64, &wide, sizeof(wide));
	read_back("netem", "rate=1gbit", "rate=100gbit");
}

static void test_bursts(void)
{
	struct tc_netem_gemodel model = {
	    .p = PERCENT, .r = 10 * PERCENT, .h = 30 * PERCENT, .k1 = 2 * PERCENT};
	uint8_t inner[RTA_SPACE(sizeof(model))] = {0};
	struct rtattr head = {.rta_len = (unsigned short)RTA_LENGTH(sizeof(model)),
			      .rta_type = NETEM_LOSS_GE};

	memcpy(inner, &head, sizeof(head));
	memcpy(inner + RTA_LENGTH(0), &model, sizeof(model));
	begin(0, 0);
	add(TCA_NETEM_LOSS | NLA_F_NESTED, inner, sizeof(inner));
	read_back("netem", "loss=gemodel:1%:10%:70%:2%", "loss=gemodel:1%:10%:70%:2%");
	read_back("netem", "loss=gemodel:5%:20%:50%:5%", "loss=gemodel:1%:10%:70%:2%");
}

static void test_four_states(void)
{
	struct tc_netem_gimodel model = {.p13 = PERCENT,
					 .p31 = 10 * PERCENT,
					 .p32 = 30 * PERCENT,
					 .p14 = 2 * PERCENT,
					 .p23 = 50 * PERCENT};
	uint8_t inner[RTA_SPACE(sizeof(model))] = {0};
	struct rtattr head = {.rta_len = (unsigned short)RTA_LENGTH(sizeof(model)),
			      .rta_type = NETEM_LOSS_GI};
	uint32_t yes = 1;

	memcpy(inner, &head, sizeof(head));
	memcpy(inner + RTA_LENGTH(0), &model, sizeof(model));
	begin(0, 0);
	add(TCA_NETEM_LOSS | NLA_F_NESTED, inner, sizeof(inner));
	read_back("netem", "loss=state:1%:10%:30%:50%:2%", "loss=state:1%:10%:30%:50%:2%");
	read_back("netem", "loss=state:2%:20%:10%:60%:5%", "loss=state:1%:10%:30%:50%:2%");
	read_back("netem", "loss=1%,ecn=yes", "loss=0%");
	add(TCA_NETEM_ECN, &yes, sizeof(yes));
	read_back("netem", "loss=0%,ecn=yes", "loss=0%,ecn=yes");
	read_back("netem", "loss=0%", "loss=0%,ecn=yes");
}

static void test_overhead_slot_and_seed(void)
{
	struct tc_netem_rate rate = {
	    .rate = 125000, .packet_overhead = -14, .cell_size = 48, .cell_overhead = 5};
	struct tc_netem_slot slot = {
	    .min_delay = 10000000, .max_delay = 20000000, .max_packets = 32, .max_bytes = 64000};
	uint64_t seed = 42;

	begin(0, 0);
	add(TCA_NETEM_RATE, &rate, sizeof(rate));
	read_back("netem", "rate=1mbit:-14:48:5", "rate=1mbit:-14:48:5");
	read_back("netem", "rate=2mbit:1:2:3", "rate=1mbit:-14:48:5");
	read_back("netem", "rate=1mbit,slot=5ms", "rate=1mbit");
	add(TCA_NETEM_SLOT, &slot, sizeof(slot));
	read_back("netem", "rate=1mbit,slot=5ms", "rate=1mbit,slot=10ms:20ms:32:64000");
	read_back("netem", "rate=1mbit,seed=42", "rate=1mbit,slot=10ms:20ms:32:64000");
	add(14, &seed, sizeof(seed)); /* TCA_NETEM_PRNG_SEED */
	read_back("netem", "rate=1mbit,seed=7", "rate=1mbit,slot=10ms:20ms:32:64000,seed=42");
	read_back("netem", "slot=10ms~2ms/normal", "slot=10ms:20ms:32:64000");
}

static void test_slot_with_a_distribution(void)
{
	struct tc_netem_slot slot = {
	    .max_packets = 32, .dist_delay = 10000000, .dist_jitter = 2000000};

	begin(0, 0);
	add(TCA_NETEM_SLOT, &slot, sizeof(slot));
	read_back("netem", "slot=9ms~1ms/pareto", "slot=10ms~2ms/pareto:32");
	read_back("netem", "slot=10ms~2ms/normal:32", "slot=10ms~2ms/normal:32");
	read_back("netem", "slot=2ms:18ms:32", "slot=0:0:32"); /* another one */
}

static void test_tbf(void)
{
	struct tc_tbf_qopt basic = {.rate = {.rate = 1250000}},
			   large = {.rate = {.rate = UINT32_MAX}};
	uint64_t wide = 12500000000;

	used = 0;
	add(TCA_TBF_PARMS, &basic, sizeof(basic));
	read_back("tbf", "rate=10mbit", "rate=10mbit");
	read_back("tbf", "rate=20mbit", "rate=10mbit");
	read_back("pfifo", "rate=20mbit", "rate=20mbit");
	used = 0;
	add(TCA_TBF_PARMS, &large, sizeof(large));
	add(TCA_TBF_RATE64, &wide, sizeof(wide));
	read_back("tbf", "rate=1gbit", "rate=100gbit");
}

int main(void)
{
	test_chances();
	test_times_and_rates();
	test_bursts();
	test_four_states();
	test_overhead_slot_and_seed();
	test_slot_with_a_distribution();
	test_tbf();
	return done_testing();
}
