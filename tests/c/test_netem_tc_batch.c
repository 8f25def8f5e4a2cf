/* From a specification to lines of tc: limits, bands, filters, and which conditions can meet. */
#include "tap.h"

#include "netem/kernel/job_scope.h"
#include "netem/kernel/tc_batch.h"

#include <stdlib.h>
#include <sys/socket.h>

static struct sy_netem parsed(const char *text)
{
	struct sy_netem spec = {0};
	struct sy_error err = {{0}};

	ok(sy_netem_parse(text, &spec, &err) == 0, "parsed %s%s", text, err.text);
	return spec;
}

static struct sy_placement place_of(unsigned band)
{
	return (struct sy_placement){
	    .device = "v0", .band = band, .first = true, .mtu = 1500, .limit_packets = 1000};
}

static bool has(const char *text, const char *part)
{
	return ok(text && strstr(text, part), "has: %s", part) ||
	       (printf("# in:\n# %s\n", text), false);
}

static void test_limits(void)
{
	struct sy_netem spec = parsed("delay=50ms,rate=100mbit");

	/* 1.5 × 100e6 × 0.05 / 8 / 1500 = 625 */
	is_int(sy_plan_limit(&spec, 1500, 0, 0), 1000, "never below netem's own");
	is_int(sy_plan_limit(&spec, 1500, 0, 6000000), 1000, "a link of that rate is no longer");
	spec = parsed("delay=100ms,rate=10gbit");
	is_int(sy_plan_limit(&spec, 1500, 0, 6000000), 125000, "1.5 x rate x delay / MTU");
	spec = parsed("delay=1us");
	is_int(sy_plan_limit(&spec, 1500, 0, 6000000), 4000, "without a rate a TCP window fits");
	spec = parsed("delay=50ms~10ms");
	is_int(sy_plan_limit(&spec, 1500, 0, 0), 75000, "10 gbit where the device does not tell");
	is_int(sy_plan_limit(&spec, 9000, 25000000000, 0), 31250, "25 gbit, jumbo frames");
	spec = parsed("delay=50ms,limit=7");
	is_int(sy_plan_limit(&spec, 1500, 0, 6000000), 7, "as asked");
}

static void test_netem_line(void)
{
	struct sy_netem spec = parsed("delay=50ms~5ms/normal,loss=0.1%,duplicate=1%,corrupt=0.01%,"
				      "reorder=25%,rate=100mbit");
	struct sy_placement placement = place_of(2);
	char *text = sy_plan_apply(&spec, &placement, NULL, 0);

	has(text, "qdisc replace dev v0 root handle 57e1: prio bands 16 priomap 0 0 0 0");
	has(text, "parent 57e1:2 handle 5802: netem limit 1000 delay 50000us 5000us distribution "
		  "normal loss random 0.1000000% duplicate 1.0000000% corrupt 0.0100000% reorder "
		  "25.0000000% rate 100000000bit\n");
	free(text);
	spec = parsed("loss=gemodel:1%:10%:70%:0.1%");
	text = sy_plan_apply(&spec, &placement, NULL, 0);
	has(text, "loss gemodel 1.0000000% 10.0000000% 70.0000000% 0.1000000%\n");
	free(text);
}

static void test_models_and_slots(void)
{
	struct sy_netem spec = parsed("loss=state:1%:10%:30%:50%:0.1%,ecn=yes,rate=1mbit:-14:48:5,"
				      "slot=10ms:20ms:32:64000,seed=42");
	struct sy_placement placement = place_of(2);
	char *text = sy_plan_apply(&spec, &placement, NULL, 0);

	has(text, "netem limit 1000 loss state 1.0000000% 10.0000000% 30.0000000% 50.0000000% "
		  "0.1000000% ecn slot 10000us 20000us packets 32 bytes 64000 rate 1000000bit -14 "
		  "48 5\n");
	ok(!strstr(text, "seed"), "tc of Debian 12 has no word for a seed");
	free(text);
	spec = parsed("slot=5ms");
	text = sy_plan_apply(&spec, &placement, NULL, 0);
	has(text, "slot 5000us 5000us\n");
	free(text);
	spec = parsed("slot=10ms~2ms/pareto:3:4500");
	text = sy_plan_apply(&spec, &placement, NULL, 0);
	has(text, "slot distribution pareto 10000us 2000us packets 3 bytes 4500\n");
	free(text);
}

static void test_filters(void)
{
	struct sy_netem spec = parsed("rate=8mbit,to=10.0.0.0/8,port=1094");
	struct sy_network protect = {.family = AF_INET, .address = {10, 0, 0, 1}, .prefix = 32};
	struct sy_placement placement = place_of(3);
	char *text, *first, *second;

	placement.htb = placement.tbf = true;
	text = sy_plan_apply(&spec, &placement, &protect, 1);
	has(text, "root handle 57e1: htb default 0\n");
	has(text, "handle 5803: tbf rate 8000000bit burst 10000b limit 1528000b\n");
	first = strstr(text, "match ip dst 10.0.0.1 flowid 57e1:0\n");
	second = strstr(text, "match ip dst 10.0.0.0/8 match ip protocol 6 0xff");
	ok(first && second && first < second, "what is protected comes first");
	has(text, "match ip sport 22 0xffff flowid 57e1:0\n");
	has(text, "match ip dport 1094 0xffff flowid 57e1:3\n");
	has(text, "match ip6 dport 22 0xffff");
	has(text, "match ip protocol 1 0xff match ip tos 0xac 0xfc match u8 0x05 0x0f at 0 match "
		  "u8 0 0xff at 20 flowid 57e1:0\n");
	has(text, "match ip6 priority 0xac 0xfc match u8 129 0xff at 40 flowid 57e1:0\n");
	ok(!strstr(text, "protocol arp") && !strstr(text, "protocol all"), "ARP is left alone");
	free(text);
	placement.by_cgroup = true;
	text = sy_plan_apply(&spec, &placement, &protect, 1);
	ok(!strstr(text, "filter"), "no filters where the cgroup decides");
	free(text);
}

static void test_ingress(void)
{
	struct sy_netem spec = parsed("delay=1ms,to=10.0.0.0/8,direction=ingress");
	struct sy_placement placement = place_of(2);
	char *text;

	placement.direction = SY_INGRESS;
	strcpy(placement.ifb, "sy-ifb3");
	text = sy_plan_apply(&spec, &placement, NULL, 0);
	has(text, "qdisc replace dev sy-ifb3 root handle 5802: netem");
	has(text, "parent ffff: protocol ip pref 204 u32 match ip src 10.0.0.0/8 flowid :1 action "
		  "mirred egress redirect dev sy-ifb3\n");
	has(text, "match u8 8 0xff at 20 flowid :1\n");
	free(text);
}

static void test_change(void)
{
	struct sy_netem spec = parsed("delay=20ms,direction=ingress");
	struct sy_placement placement = place_of(3);
	char *text = sy_plan_change(&spec, &placement);

	is_string(text,
		  "qdisc change dev v0 parent 57e1:3 handle 5803: netem limit 1000 delay 20000us\n",
		  "of the band alone");
	free(text);
	placement.direction = SY_INGRESS;
	strcpy(placement.ifb, "sy-ifb3");
	text = sy_plan_change(&spec, &placement);
	is_string(text,
		  "qdisc change dev sy-ifb3 root handle 5803: netem limit 1000 delay 20000us\n",
		  "of what comes in");
	free(text);
}

static void test_undo(void)
{
	struct sy_placement placement = place_of(2);
	char *text = sy_plan_undo(&placement, true);

	is_string(text, "qdisc del dev v0 root\n", "the last one takes the root");
	free(text);
	text = sy_plan_undo(&placement, false);
	has(text, "filter del dev v0 parent 57e1: protocol ipv6 pref 205\n");
	has(text, "qdisc del dev v0 parent 57e1:2\n");
	free(text);
}

static void meet(const char *a, const char *b, bool expected)
{
	struct sy_netem one = parsed(a), other = parsed(b);

	ok(sy_plan_overlap(&one, &other) == expected && sy_plan_overlap(&other, &one) == expected,
	   "%s and %s: %d", a, b, expected);
}

static void test_overlap(void)
{
	meet("loss=1%", "loss=1%,to=10.0.0.0/8", true);
	meet("loss=1%,to=10.1.0.0/16", "loss=1%,to=10.0.0.0/8", true);
	meet("loss=1%,to=10.1.0.0/16", "loss=1%,to=10.2.0.0/16", false);
	meet("loss=1%,to=10.0.0.0/9", "loss=1%,to=10.128.0.0/9", false);
	meet("loss=1%,to=::/0", "loss=1%,to=0.0.0.0/0", false);
}

static struct bpf_insn code[SY_SCOPE_MOST];

static void is_program(int count, int32_t class)
{
	bool inside = true, writes = false;

	ok(count > 20 && count < SY_SCOPE_MOST, "%d instructions", count);
	for (int i = 0; i < count; i++) {
		if (BPF_CLASS(code[i].code) == BPF_JMP && BPF_OP(code[i].code) != BPF_CALL &&
		    BPF_OP(code[i].code) != BPF_EXIT)
			inside &= code[i].off >= 0 && i + 1 + code[i].off < count;
		writes |= code[i].imm == class;
	}
	ok(inside, "every jump leads forward, to an instruction");
	ok(writes, "the band is written");
	is_int(code[count - 1].code, BPF_JMP | BPF_EXIT, "ends with an exit");
}

static void test_program(void)
{
	struct sy_netem one = parsed("loss=1%,to=10.0.0.0/8,to=fd00::/8,port=80");
	struct sy_netem two = parsed("delay=9ms,to=10.2.0.0/16"),
			three = parsed("loss=1%,to=fd02::/16");
	struct sy_scope_rule wish[] = {
	    {&one, 0x57e10002}, {&two, 0x57e10003}, {&three, 0x57e10004}};

	is_program(sy_scope_program(wish, 1, NULL, 0, code), 0x57e10002);
	is_program(sy_scope_program(wish + 1, 2, NULL, 0, code), 0x57e10003);
	is_program(sy_scope_program(wish + 1, 2, NULL, 0, code), 0x57e10004);
}

int main(void)
{
	test_limits();
	test_netem_line();
	test_models_and_slots();
	test_filters();
	test_ingress();
	test_change();
	test_undo();
	test_overlap();
	test_program();
	return done_testing();
}
