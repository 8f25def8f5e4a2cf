/* The netem specification: what is read, what is refused with which words, and the way back. */
#include "tap.h"

#include "netem/spec/spec.h"
#include "netem/spec/values.h"

#include <stdlib.h>

static const struct {
	const char *text, *canonical;
} good[] = {
    {"none", "none"},
    {"delay=0", "delay=0"},
    {"delay=0ms", "delay=0"},
    {"delay=50ms", "delay=50ms"},
    {"delay=1.5ms", "delay=1500us"},
    {"delay=1.500000000000ms", "delay=1500us"},
    {"delay=1000ms", "delay=1s"},
    {"delay=274s", "delay=274s"},
    {"delay=50ms~5ms", "delay=50ms~5ms"},
    {"delay=50ms~0", "delay=50ms"},
    {"delay=50ms~5ms/uniform", "delay=50ms~5ms"},
    {"delay=50ms~5ms/normal", "delay=50ms~5ms/normal"},
    {"delay=3s~2147483us/paretonormal", "delay=3s~2147483us/paretonormal"},
    {"delay=5ms~1ms/table:wan-2_A", "delay=5ms~1ms/table:wan-2_A"},
    {"loss=0%", "loss=0%"},
    {"loss=100%", "loss=100%"},
    {"loss=0.000001%", "loss=0.000001%"},
    {"loss=10.50%", "loss=10.5%"},
    {"loss=gemodel:1%", "loss=gemodel:1%"},
    {"loss=gemodel:1%:99%", "loss=gemodel:1%"},
    {"loss=gemodel:1%:10%:100%:0%", "loss=gemodel:1%:10%"},
    {"loss=gemodel:1%:99%:70%", "loss=gemodel:1%:99%:70%"},
    {"loss=gemodel:1%:10%:70%:0.1%", "loss=gemodel:1%:10%:70%:0.1%"},
    {"loss=state:1%", "loss=state:1%"},
    {"loss=state:1%:99%:0%:100%:0%", "loss=state:1%"},
    {"loss=state:1%:10%:30%", "loss=state:1%:10%:30%"},
    {"loss=state:1%:99%:0%:100%:0.1%", "loss=state:1%:99%:0%:100%:0.1%"},
    {"loss=state:0%:0%:0%:0%:2%,ecn=yes", "loss=state:0%:0%:0%:0%:2%,ecn=yes"},
    {"rate=1mbit:0", "rate=1mbit:0"},
    {"rate=1mbit:-14:0:0", "rate=1mbit:-14"},
    {"rate=1000kbit:24:48", "rate=1mbit:24:48"},
    {"rate=1mbit:1500:65535:1500", "rate=1mbit:1500:65535:1500"},
    {"slot=20ms:20ms", "slot=20ms"},
    {"slot=0:5ms:0:0", "slot=0:5ms"},
    {"slot=5ms:5ms:2", "slot=5ms:5ms:2"},
    {"slot=5ms:9ms:0:1500", "slot=5ms:9ms:0:1500"},
    {"slot=10ms~2000us/normal", "slot=10ms~2ms/normal"},
    {"slot=10ms~2ms/pareto:3", "slot=10ms~2ms/pareto:3"},
    {"slot=1500us~1ms/paretonormal:0:4500", "slot=1500us~1ms/paretonormal:0:4500"},
    {"rate=8bit,seed=0", "rate=8bit,seed=0"},
    {"loss=1%,seed=9223372036854775807", "loss=1%,seed=9223372036854775807"},
    {"trace=wan", "trace=wan"},
    {"to=10.0.0.1,duplicate=1%,trace=a-1_B:repeat", "duplicate=1%,trace=a-1_B:repeat,to=10.0.0.1"},
    {"rate=100mbit", "rate=100mbit"},
    {"rate=1000mbit", "rate=1gbit"},
    {"rate=1.5gbit", "rate=1500mbit"},
    {"rate=8bit", "rate=8bit"},
    {"rate=1000gbit", "rate=1000gbit"},
    {"limit=4294967295", "limit=4294967295"},
    {"rto_min=2ms", "rto_min=2ms"},
    {"rto_min=2000us", "rto_min=2ms"},
    {"delay=1ms,to=10.1.2.3/32", "delay=1ms,to=10.1.2.3"},
    {"delay=1ms,to=0.0.0.0/0", "delay=1ms,to=0.0.0.0/0"},
    {"delay=1ms,to=2001:DB8:0::/32,to=::1", "delay=1ms,to=2001:db8::/32,to=::1"},
    {"direction=both,dev=eth0.100,port=1094,port=1,to=10.0.0.0/8,rto_min=2ms,limit=9,rate=8kbit,"
     "reorder=1%,corrupt=0.01%,duplicate=1%,loss=0.1%,delay=50ms",
     "delay=50ms,loss=0.1%,duplicate=1%,corrupt=0.01%,reorder=1%,rate=8kbit,limit=9,rto_min=2ms,"
     "to=10.0.0.0/8,port=1094,port=1,dev=eth0.100,direction=both"},
    {"delay=1ms,dev=abcdefghijklmno", "delay=1ms,dev=abcdefghijklmno"},
    {"delay=1ms,direction=egress", "delay=1ms"},
    {"direction=egress,delay=1ms,dev=eth0", "delay=1ms,dev=eth0"},
    {"delay=1ms,direction=ingress", "delay=1ms,direction=ingress"},
};

/* A specification, and how its error ends. */
static const struct {
	const char *text, *error;
} bad[] = {
    {"", "netem: an empty specification: expected parts such as delay=50ms,loss=0.1%, or none"},
    {"delay=50", "netem: delay=50: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=50MS", "netem: delay=50MS: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=.5ms", "netem: delay=.5ms: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=5.ms", "netem: delay=5.ms: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=1.5.0ms", "netem: delay=1.5.0ms: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=1e3ms", "netem: delay=1e3ms: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=", "netem: delay=: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=50ms~", "netem: delay=50ms~: expected a time with unit us, ms or s, such as 50ms"},
    {"delay=-5ms", "netem: delay=-5ms: a time cannot be negative; expected one such as 50ms"},
    {"delay=1.5us", "netem: delay=1.5us: expected a time in whole microseconds, such as 1.5ms"},
    {"delay=275s", "netem: delay=275s: expected a time of at most 274s"},
    {"delay=99999999999999999999ms",
     "netem: delay=99999999999999999999ms: expected a time of at most 274s"},
    {"delay=9223372036854775807s",
     "netem: delay=9223372036854775807s: expected a time of at most 274s"},
    {"delay=9s~3s", "netem: delay=9s~3s: expected a time of at most 2147483us"},
    {"delay=1ms~2ms", "netem: delay=1ms~2ms: expected a jitter of at most the delay: no packet "
		      "arrives before it was sent, and the mean would be another"},
    {"delay=5ms/normal",
     "netem: delay=5ms/normal: a distribution needs a jitter, such as delay=50ms~5ms/normal"},
    {"delay=5ms~1ms/", "netem: delay=5ms~1ms/: expected uniform, normal, pareto, paretonormal or "
		       "table:NAME after the /"},
    {"delay=5ms~1ms/zipf", "netem: delay=5ms~1ms/zipf: expected uniform, normal, pareto, "
			   "paretonormal or table:NAME after the /"},
    {"delay=5ms~1ms/table:../x",
     "netem: delay=5ms~1ms/table:../x: expected the name of a delay table, such as table:wan: at "
     "most 31 letters, digits, '_' or '-'"},
    {"delay=5ms/table:wan",
     "netem: delay=5ms/table:wan: a distribution needs a jitter, such as delay=50ms~5ms/table"},
    {"loss=0.1", "netem: loss=0.1: expected a percentage from 0% to 100%, such as 0.1%"},
    {"loss=101%", "netem: loss=101%: expected a percentage from 0% to 100%, such as 0.1%"},
    {"loss=100.000001%",
     "netem: loss=100.000001%: expected a percentage from 0% to 100%, such as 0.1%"},
    {"loss=-1%", "netem: loss=-1%: expected a percentage from 0% to 100%, such as 0.1%"},
    {"loss=0.0000001%", "netem: loss=0.0000001%: expected at most six decimals, such as 0.000001%"},
    {"loss=gemodel", "netem: loss=gemodel: expected loss=0.1%, loss=gemodel:p:r:1-h:1-k, such as "
		     "loss=gemodel:1%:10%, or loss=state:p13:p31:p32:p23:p14"},
    {"loss=chain:1%", "netem: loss=chain:1%: expected loss=0.1%, loss=gemodel:p:r:1-h:1-k, such "
		      "as loss=gemodel:1%:10%, or loss=state:p13:p31:p32:p23:p14"},
    {"loss=state:100%",
     "netem: loss=state:100%: p31 is 0%: a burst would never end; expected more"},
    {"loss=state:1%:10%:10%:0%", "netem: loss=state:1%:10%:10%:0%: p23 is 0%: what p32 leads to "
				 "would never end; expected more"},
    {"loss=state:60%:10%:0%:100%:41%",
     "netem: loss=state:60%:10%:0%:100%:41%: p13 and p14 are chances of one packet: expected at "
     "most 100% together"},
    {"loss=state:1%:60%:41%", "netem: loss=state:1%:60%:41%: p31 and p32 are chances of one "
			      "packet: expected at most 100% together"},
    {"loss=state:1%:1%:1%:1%:1%:1%", "netem: loss=state:1%:1%:1%:1%:1%:1%: expected at most 5 "
				     "percentages: p13:p31:p32:p23:p14"},
    {"ecn=yes,delay=1ms", "netem: ecn: needs a loss whose packets are marked, such as "
			  "loss=1%,ecn=yes"},
    {"loss=1%,ecn=on", "netem: ecn=on: expected yes; without it, leave ecn out"},
    {"rate=1mbit:-15", "netem: rate=1mbit:-15: expected bytes from -14 to 1500 there"},
    {"rate=1mbit:0:0:5", "netem: rate=1mbit:0:0:5: a cell of 0 bytes takes nothing more: expected "
			 "its size, such as rate=10mbit:0:48:5"},
    {"rate=1mbit:0:-1", "netem: rate=1mbit:0:-1: expected bytes from 0 to 65535 there"},
    {"rate=1mbit:0:48:5:1", "netem: rate=1mbit:0:48:5:1: expected bytes from 0 to 1500 there"},
    {"trace=",
     "netem: trace=: expected the name of a trace, such as trace=wan: at most 31 letters, "
     "digits, '_' or '-'"},
    {"trace=../wan",
     "netem: trace=../wan: expected the name of a trace, such as trace=wan: at most "
     "31 letters, digits, '_' or '-'"},
    {"trace=wan:twice", "netem: trace=wan:twice: expected trace=NAME, which is held at its end, or "
			"trace=NAME:repeat"},
    {"trace=wan,delay=1ms", "netem: trace: says itself what delay, loss and rate are, and takes no "
			    "seed: leave these out"},
    {"slot=0", "netem: slot=0: expected a longest time between slots that is not 0 and not less "
	       "than the shortest, such as slot=10ms:20ms"},
    {"slot=2ms:1ms", "netem: slot=2ms:1ms: expected a longest time between slots that is not 0 "
		     "and not less than the shortest, such as slot=10ms:20ms"},
    {"slot=10ms~2ms",
     "netem: slot=10ms~2ms: expected slot=10ms:20ms, or a mean, a jitter and normal, "
     "pareto or paretonormal, such as slot=10ms~2ms/normal"},
    {"slot=10ms~2ms/uniform", "netem: slot=10ms~2ms/uniform: expected slot=10ms:20ms, or a mean, a "
			      "jitter and normal, pareto "
			      "or paretonormal, such as slot=10ms~2ms/normal"},
    {"slot=1ms~2ms/normal",
     "netem: slot=1ms~2ms/normal: expected a jitter that is not 0 and at most the mean"},
    {"slot=1ms:2ms:2147483648",
     "netem: slot=1ms:2ms:2147483648: expected a whole number from 0 to 2147483647"},
    {"loss=1%,seed=-1", "netem: seed=-1: expected a whole number from 0 to 9223372036854775807"},
    {"loss=gemodel:", "netem: loss=gemodel:: expected a percentage from 0% to 100%, such as 0.1%"},
    {"loss=gemodel:1%:1%:1%:1%:1%",
     "netem: loss=gemodel:1%:1%:1%:1%:1%: expected at most 4 percentages: p:r:1-h:1-k"},
    {"reorder=1%", "netem: reorder: needs a delay that the others wait, such as "
		   "delay=10ms,reorder=1%"},
    {"delay=0,reorder=1%", "netem: reorder: needs a delay that the others wait, such as "
			   "delay=10ms,reorder=1%"},
    {"rate=100", "netem: rate=100: expected a rate with unit bit, kbit, mbit or gbit, such as "
		 "100mbit"},
    {"rate=100mbps", "netem: rate=100mbps: expected a rate with unit bit, kbit, mbit or gbit, "
		     "such as 100mbit"},
    {"rate=1001gbit", "netem: rate=1001gbit: expected a rate of at most 1000gbit"},
    {"rate=0bit", "netem: rate=0bit: expected whole bytes a second, at least one: a multiple of "
		  "8bit, since the kernel counts bytes"},
    {"rate=9bit", "netem: rate=9bit: expected whole bytes a second, at least one: a multiple of "
		  "8bit, since the kernel counts bytes"},
    {"limit=0", "netem: limit=0: expected a whole number from 1 to 4294967295"},
    {"limit=1.5", "netem: limit=1.5: expected a whole number from 1 to 4294967295"},
    {"limit=4294967296", "netem: limit=4294967296: expected a whole number from 1 to 4294967295"},
    {"rto_min=0", "netem: rto_min=0: expected whole milliseconds, at least 1ms, since the kernel "
		  "keeps no less"},
    {"rto_min=2500us", "netem: rto_min=2500us: expected whole milliseconds, at least 1ms, since "
		       "the kernel keeps no less"},
    {"rto_min=121s", "netem: rto_min=121s: expected a time of at most 120s"},
    {"delay=1ms,to=10.0.0.1/8",
     "netem: to=10.0.0.1/8: bits after the prefix are set; the network is 10.0.0.0/8"},
    {"delay=1ms,to=10.128.0.0/8",
     "netem: to=10.128.0.0/8: bits after the prefix are set; the network is 10.0.0.0/8"},
    {"delay=1ms,to=10.192.0.0/9",
     "netem: to=10.192.0.0/9: bits after the prefix are set; the network is 10.128.0.0/9"},
    {"delay=1ms,to=2001:db8::1/32",
     "netem: to=2001:db8::1/32: bits after the prefix are set; the network is 2001:db8::/32"},
    {"delay=1ms,to=10.0.0.0/33",
     "netem: to=10.0.0.0/33: expected a prefix length from 0 to 32 after the /"},
    {"delay=1ms,to=10.0.0.0/",
     "netem: to=10.0.0.0/: expected a prefix length from 0 to 32 after the /"},
    {"delay=1ms,to=10.0.0.0/08",
     "netem: to=10.0.0.0/08: expected a prefix length from 0 to 32 after the /"},
    {"delay=1ms,to=10.1", "netem: to=10.1: expected an address or a network, such as 10.0.0.0/8 "
			  "or 2001:db8::1"},
    {"delay=1ms,to=host.example", "netem: to=host.example: expected an address or a network, such "
				  "as 10.0.0.0/8 or 2001:db8::1"},
    {"delay=1ms,to=::ffff:10.0.0.1",
     "netem: to=::ffff:10.0.0.1: expected the IPv4 address itself: such packets are IPv4"},
    {"delay=1ms,to=::1,to=::1", "netem: to=::1: given twice"},
    {"delay=1ms,port=0", "netem: port=0: expected a whole number from 1 to 65535"},
    {"delay=1ms,port=65536", "netem: port=65536: expected a whole number from 1 to 65535"},
    {"delay=1ms,port=1,port=2,port=1", "netem: port=1: given twice"},
    {"delay=1ms,port=1,port=2,port=3,port=4,port=5,port=6,port=7,port=8,port=9",
     "netem: port=9: expected at most 8 of port="},
    {"delay=1ms,to=::1,to=::2,to=::3,to=::4,to=::5,to=::6,to=::7,to=::8,to=::9",
     "netem: to=::9: expected at most 8 of to="},
    {"delay=1ms,dev=", "netem: dev=: expected a network device such as eth0: at most 15 letters, "
		       "digits, '.', '_' or '-'"},
    {"delay=1ms,dev=abcdefghijklmnop",
     "netem: dev=abcdefghijklmnop: expected a network device such as eth0: at most 15 letters, "
     "digits, '.', '_' or '-'"},
    {"delay=1ms,dev=../../etc/x", "netem: dev=../../etc/x: expected a network device such as "
				  "eth0: at most 15 letters, digits, '.', '_' or '-'"},
    {"delay=1ms,dev=-all", "netem: dev=-all: expected a network device such as eth0: at most 15 "
			   "letters, digits, '.', '_' or '-'"},
    {"delay=1ms,direction=in", "netem: direction=in: expected egress, ingress or both"},
    {"delay", "netem: delay: expected a value, such as delay=50ms"},
    {"delya=1ms", "netem: delya=1ms: unknown part; known are "
#define KEY(id, key, ...) key ", "
#include "facts/netem_keys.def"
		  "or none alone"},
    {"del=1ms", "netem: del=1ms: unknown part; known are "
#define KEY(id, key, ...) key ", "
#include "facts/netem_keys.def"
		"or none alone"},
    {"delay=1ms,delay=2ms", "netem: delay=2ms: delay was given already, expected it once"},
    {"loss=1%,loss=gemodel:1%", "netem: loss=gemodel:1%: loss was given already, expected it once"},
    {"none,delay=1ms", "netem: none: stands alone, expected no other part beside it"},
    {"delay=1ms,none", "netem: none: stands alone, expected no other part beside it"},
    {"to=10.0.0.0/8,dev=eth0", "netem: to=10.0.0.0/8: says where but not what; expected a part "
			       "such as delay=50ms too"},
    {",", "netem: an empty part: expected one such as delay=50ms between commas, and no comma at "
	  "either end"},
    {"delay=1ms,", "netem: an empty part: expected one such as delay=50ms between commas, and no "
		   "comma at either end"},
    {"delay=1ms,,loss=1%", "netem: an empty part: expected one such as delay=50ms between commas, "
			   "and no comma at either end"},
    {"delay=1ms, loss=1%", "netem:  loss=1%: character ' ' has no place in a specification"},
    {"delay=1ms;reboot", "netem: delay=1ms;reboot: character ';' has no place in a specification"},
    {"dev=$(id)", "netem: dev=$(id): character '$' has no place in a specification"},
    {"dev=`id`", "netem: dev=`id`: character '`' has no place in a specification"},
    {"dev=eth0\n", "netem: dev=eth0\\x0a: character '\\x0a' has no place in a specification"},
    {"dev=\xc3\xa9", "netem: dev=\\xc3\\xa9: character '\\xc3' has no place in a specification"},
    {"dev=\x1b[31m", "netem: dev=\\x1b[31m: character '\\x1b' has no place in a specification"},
};

static void test_good(void)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct sy_netem spec;
		struct sy_error err = {{0}};
		char text[SY_NETEM_SIZE];
		size_t length;

		if (!ok(sy_netem_parse(good[i].text, &spec, &err) == 0, "%s %s", good[i].text,
			err.text))
			continue;
		length = sy_netem_format(&spec, text);
		is_int((int64_t)length, (int64_t)strlen(text), "length");
		is_string(text, good[i].canonical, "canonical");
	}
}

static void test_bad(void)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		static const struct sy_netem nothing;
		struct sy_netem spec;
		struct sy_error err = {{0}};

		ok(sy_netem_parse(bad[i].text, &spec, &err) == -1, "refused: %zu", i);
		is_string(err.text, bad[i].error, "its error");
		ok(!memcmp(&spec, &nothing, sizeof(spec)), "nothing of it is kept");
	}
}

static void test_length(void)
{
	static char text[4097];
	struct sy_netem spec;
	struct sy_error err;

	memset(text, 'a', 4096);
	ok(sy_netem_parse(text, &spec, &err) < 0, "4096 characters");
	is_string(err.text, "netem: a specification of 4096 characters: expected at most 1023",
		  "its error");
	text[SY_NETEM_SIZE - 1] = '\0';
	ok(sy_netem_parse(text, &spec, &err) < 0 && strlen(err.text) < 300,
	   "1023 characters are read, and not all shown: %s", err.text);
}

static void test_numbers(void)
{
	struct sy_netem spec;
	struct sy_error err;

	ok(sy_netem_parse("delay=50ms~5ms/pareto,loss=gemodel:1%:10%,rate=8kbit,direction=ingress,"
			  "to=10.0.0.0/8,port=1094",
			  &spec, &err) == 0,
	   "many parts");
	is_int(spec.delay_us, 50000, "delay_us");
	is_int(spec.jitter_us, 5000, "jitter_us");
	is_int(spec.distribution, SY_PARETO, "distribution");
	ok(spec.has_gemodel && !spec.has_loss, "gemodel is not loss");
	is_int(spec.gemodel.p_ppb, 10000000, "p");
	is_int(spec.gemodel.r_ppb, 100000000, "r");
	is_int(spec.gemodel.one_minus_h_ppb, SY_WHOLE_PPB, "1-h where it was left out");
	is_int(spec.gemodel.one_minus_k_ppb, 0, "1-k where it was left out");
	is_int(spec.rate_bit_per_s, 8000, "rate");
	is_int(spec.direction, SY_INGRESS, "direction");
	ok(spec.to_count == 1 && spec.to[0].address[0] == 10 && spec.to[0].prefix == 8, "to");
	is_int(spec.port[0], 1094, "port");
}

static bool contains(const char *outer, const char *inner)
{
	struct sy_network large, small;

	return sy_parse_network(outer, &large, NULL) == 0 &&
	       sy_parse_network(inner, &small, NULL) == 0 && sy_network_contains(&large, &small);
}

static void test_networks(void)
{
	ok(contains("10.0.0.0/8", "10.0.0.0/8"), "itself");
	ok(contains("10.0.0.0/8", "10.255.0.0/16"), "a part");
	ok(!contains("10.0.0.0/16", "10.0.0.0/8"), "not what is wider");
	ok(!contains("10.0.0.0/9", "10.128.0.0/9"), "not what is beside it");
	ok(contains("2001:db8::/33", "2001:db8:7fff::1"), "IPv6");
	ok(!contains("0.0.0.0/0", "::1") && !contains("::/0", "0.0.0.0"), "not the other family");
}

static bool needs(const char *text)
{
	struct sy_netem spec;

	return sy_netem_parse(text, &spec, NULL) == 0 && sy_netem_needs_single_packets(&spec);
}

static void test_single_packets(void)
{
	ok(!needs("none") && !needs("delay=1ms,rate=8kbit,limit=3,rto_min=2ms"),
	   "super-packets do");
	ok(needs("loss=1%") && needs("loss=gemodel:1%") && needs("duplicate=1%") &&
	       needs("corrupt=1%") && needs("delay=1ms,reorder=1%"),
	   "single packets");
	ok(needs("loss=0%"), "the baseline of a loss is like it");
}

static void is_json(const char *text, const char *expected)
{
	struct sy_netem spec;
	struct sy_error err;
	json_t *json;
	char *got;

	ok(sy_netem_parse(text, &spec, &err) == 0, "%s", text);
	json = sy_netem_json(&spec);
	got = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
	is_string(got, expected, "as JSON");
	free(got);
	json_decref(json);
}

static void test_json(void)
{
	is_json("none", "{}");
	is_json("delay=0,loss=0.1%", "{\"delay_s\":0.0,\"loss\":0.001}");
	is_json("delay=50ms~5ms,loss=gemodel:1%:10%:70%:0.1%,duplicate=1%,corrupt=2%,reorder=3%,"
		"rate=100mbit,limit=7,rto_min=2ms,to=10.0.0.0/8,to=::1,port=1094,dev=eth0,"
		"direction=ingress",
		"{\"delay_s\":0.05,\"jitter_s\":0.005,\"distribution\":\"uniform\",\"gemodel\":"
		"{\"p\":0.01,\"r\":0.1,\"one_minus_h\":0.7,\"one_minus_k\":0.001},"
		"\"duplicate\":0.01,\"corrupt\":0.02,\"reorder\":0.03,\"rate_bit_per_s\":100000000,"
		"\"limit_packets\":7,\"rto_min_s\":0.002,\"to\":[\"10.0.0.0/8\",\"::1\"],"
		"\"port\":[1094],\"device\":\"eth0\",\"direction\":\"ingress\"}");
}

int main(void)
{
	test_good();
	test_bad();
	test_length();
	test_numbers();
	test_networks();
	test_single_packets();
	test_json();
	return done_testing();
}
