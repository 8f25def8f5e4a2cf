/* Files of sites: which links begin here, files that are refused, and what a state makes of each
 * link: measured, judged, and the whole by all of them. */
#include "netem_documents.h"

#include "netem/job_conditions.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"
#include "netem/verify/verify.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TWO                                                                                        \
	"# compiled\n"                                                                             \
	"site fnal 10.2.0.0/24 10.3.1.7\r\n"                                                       \
	"to cern delay=45ms,to=10.1.0.0/24,to=fd01::/64\n"                                         \
	"\n"                                                                                       \
	"site kek 10.4.0.0/16\n"
#define CERN "site cern 10.1.0.0/24 fd01::/64\n" /* line 6 */

static char folder[] = "/tmp/steelyard-sites-XXXXXX";
static char path[64];

static struct sy_own_addresses at(const char *address)
{
	struct sy_own_addresses own = {.count = 1};

	(void)sy_parse_network(address, &own.item[0], NULL);
	return own;
}

static int read_at(const char *address, const char *text, struct sy_sites *sites,
		   struct sy_error *err)
{
	struct sy_own_addresses own = at(address);
	FILE *file = fopen(path, "w");

	(void)fputs(text, file);
	(void)fclose(file);
	(void)chmod(path, 0644);
	return sy_sites_read(folder, "wan", &own, sites, err);
}

static void is_link(const struct sy_sites *sites, int number, const char *to, const char *text)
{
	char found[SY_NETEM_SIZE];

	is_string(sites->link[number].to, to, "to which site");
	(void)sy_netem_format(&sites->link[number].spec, found);
	is_string(found, text, "under what");
}

static void test_grammar(void)
{
	struct sy_netem spec;
	struct sy_error err;
	char text[SY_NETEM_SIZE];

	ok(sy_netem_parse("sites=a-1_B", &spec, &err) == 0, "a name");
	(void)sy_netem_format(&spec, text);
	is_string(text, "sites=a-1_B", "can be said again");
	ok(sy_netem_parse("sites=../a", &spec, &err) < 0 && strstr(err.text, "such as sites=wan"),
	   "%s", err.text);
	ok(sy_netem_parse("delay=1ms,sites=wan", &spec, &err) < 0, "refused");
	is_string(err.text,
		  "netem: sites: says itself what each link has: leave the other parts out",
		  "it stands alone");
}

static void test_reading(void)
{
	static const char text[] =
	    TWO CERN "to fnal delay=60ms,loss=0.01%,to=10.2.0.0/24,to=10.3.1.7\n"
		     "to kek rate=10mbit,to=10.4.0.0/16\n";
	struct sy_sites sites;
	struct sy_error err = {{0}};

	ok(read_at("10.1.0.9", text, &sites, &err) == 0, "read%s", err.text);
	is_string(sites.own_site, "cern", "the node's site, by its address");
	is_string(sites.sha256, "8975ee129dce95314d2e146519536acc84929a0ad693a0d7a93ce6f3ff22a9a6",
		  "which file it was, as sha256sum says");
	is_int(sites.count, 2, "links that begin there");
	is_link(&sites, 0, "fnal", "delay=60ms,loss=0.01%,to=10.2.0.0/24,to=10.3.1.7");
	is_link(&sites, 1, "kek", "rate=10mbit,to=10.4.0.0/16");
	ok(read_at("10.3.1.7", text, &sites, &err) == 0, "the other way");
	is_int(sites.count, 1, "one link");
	is_link(&sites, 0, "cern", "delay=45ms,to=10.1.0.0/24,to=fd01::/64");
	ok(read_at("fd01::5", text, &sites, &err) == 0, "by an address of IPv6");
	is_string(sites.own_site, "cern", "the same site");
	ok(read_at("10.4.9.9", text, &sites, &err) == 0, "a site that sends to all as it is");
	is_int(sites.count, 0, "no link begins there");
}

static void test_many_conditions(void)
{
	char text[16384] = "site a 10.0.0.1\n";
	struct sy_sites sites;
	struct sy_error err;
	size_t used = strlen(text);

	for (int i = 0; i < 15; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "to b delay=1ms,to=10.1.%d.0/24\n", i);
	ok(read_at("10.0.0.1", text, &sites, &err) == 0, "as many as a device has");
	is_int(sites.count, 15, "conditions");
	is_link(&sites, 14, "b", "delay=1ms,to=10.1.14.0/24");
	(void)snprintf(text + used, sizeof(text) - used, "to b delay=1ms,to=10.1.15.0/24\n");
	ok(read_at("10.0.0.1", text, &sites, &err) < 0 &&
	       strstr(err.text,
		      "line 17: more than the 15 conditions that a device has begin at a"),
	   "%s", err.text);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
	    {"", "wan.sites: expected sites and at least one line of 'to'"},
	    {CERN, "expected sites and at least one line of 'to'"},
	    {"side a 10.1.0.9\n", "line 1: expected a line of 'site' or 'to', or a comment"},
	    {"site a/b 10.1.0.9\n", "line 1: expected 'site NAME NETWORK...'"},
	    {"site a\n", "line 1: expected 'site NAME NETWORK...'"},
	    {"site a 10.1.0.300\n", "line 1: expected"},
	    {"site a 10.1.0.9\nsite a 10.0.0.0/8\n", "line 2: this node is in two sites of it, a"},
	    {"to b delay=1ms,to=10.0.0.1\n", "line 1: expected a line of 'site' before it"},
	    {TWO CERN "to fnal\n", "line 7: expected 'to NAME SPEC'"},
	    {TWO CERN "to a/b delay=1ms,to=10.0.0.1\n", "line 7: expected 'to NAME SPEC'"},
	    {TWO CERN "to fnal delay=1ms loss=1%\n", "line 7: expected 'to NAME SPEC'"},
	    {TWO CERN "to fnal delay=1\n", "line 7: netem: delay=1: expected a time"},
	    {TWO CERN "to fnal delay=1ms\n", "line 7: expected to=NETWORK"},
	    {TWO CERN "to fnal delay=1ms,to=10.2.0.0/24,direction=both\n",
	     "line 7: expected no port"},
	    {TWO CERN "to fnal trace=wan,to=10.2.0.0/24\n", "line 7: expected no none, trace"},
	    {TWO CERN "to fnal delay=1ms,to=10.2.0.0/24,rto_min=2ms\n",
	     "line 7: rto_min stands in"},
	    {TWO CERN "to fnal delay=1ms,to=10.2.0.0/24\nto fnal delay=2ms,to=10.2.0.7\n",
	     "line 8: packets to fnal are for another condition of cern too"},
	    {TWO, "wan.sites: this node (10.1.0.9) is in no site of it"},
	};
	struct sy_sites sites;
	struct sy_error err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ok(read_at("10.1.0.9", rows[i].text, &sites, &err) < 0 &&
		       strstr(err.text, rows[i].reason),
		   "refused, %s: %s", rows[i].reason, err.text);
}

static void test_refusals_of_a_node(void)
{
	struct sy_own_addresses both = {.count = 2};
	struct sy_sites sites;
	struct sy_error err;

	both.item[0] = at("10.1.0.9").item[0];
	both.item[1] = at("10.2.0.9").item[0];
	(void)read_at("10.1.0.9", TWO CERN, &sites, &err);
	ok(sy_sites_read(folder, "wan", &both, &sites, &err) < 0 &&
	       strstr(err.text, "this node is in two sites of it, fnal and cern"),
	   "%s", err.text);
	(void)chmod(path, 0666);
	ok(sy_sites_read(folder, "wan", &both, &sites, &err) < 0 &&
	       strstr(err.text, "expected a file of root's"),
	   "others may write it: %s", err.text);
	(void)unlink(path);
	ok(sy_sites_read(folder, "wan", &both, &sites, &err) < 0 &&
	       strstr(err.text, "on each node root puts it there: steelyard netem sites FILE"),
	   "%s", err.text);
}

/* A state of two links, with times of the round trip and what the kernel reports. */
static json_t *state_of_two(double first_ms, double second_ms, const char *ended)
{
	json_t *one = document(1, first_ms, 1, 100, 0), *two = document(1, second_ms, 1, 100, 0);

	(void)json_object_set_new(one, "to_site", json_string("fnal"));
	(void)json_object_set_new(one, "requested", json_string("delay=60ms,to=10.2.0.0/24"));
	(void)json_object_set_new(two, "to_site", json_string("kek"));
	(void)json_object_set_new(two, "requested", json_string("delay=90ms,to=10.4.0.0/16"));
	(void)json_object_del(one, "devices");
	(void)json_object_del(two, "devices");
	return json_pack("{s:s, s:{}, s:[{s:s,s:i,s:s,s:s},{s:s,s:i,s:s,s:s}], s:{s:[o,o]}}",
			 "requested", "sites=wan", "missing", "devices", "device", "eth0", "link",
			 0, "kernel", "a", "kernel_end", "a", "device", "eth0", "link", 1, "kernel",
			 "b", "kernel_end", ended, "sites", "links", one, two);
}

static void is_judged(json_t *state, bool first, bool second, const char *reason)
{
	const char *message = json_string_value(json_object_get(state, "invalid_reason"));

	sy_conditions_judge(state);
	message = json_string_value(json_object_get(state, "invalid_reason"));
	ok(json_is_true(json_object_get(sy_condition_document(state, 0), "valid")) == first &&
	       json_is_true(json_object_get(sy_condition_document(state, 1), "valid")) == second &&
	       json_is_true(json_object_get(state, "valid")) == (first && second),
	   "each link, and the whole");
	ok(reason ? message && strstr(message, reason) : !message, "%s",
	   message ? message : "no reason");
	ok(!json_object_get(sy_condition_document(state, 1), "devices"),
	   "devices are told of once");
	json_decref(state);
}

static void test_judging(void)
{
	is_judged(state_of_two(61, 91, "b"), true, true, NULL);
	is_judged(state_of_two(61, 61, "b"), true, false,
		  "to site kek: at the start the least round-trip time was 60.00 ms longer than");
	is_judged(state_of_two(91, 91, "b"), false, true, "to site fnal: at the start");
	is_judged(state_of_two(61, 91, "c"), true, false,
		  "to site kek: the qdisc of eth0 was changed during the job");
}

static int read_spec(json_t *state, size_t number, struct sy_netem *spec)
{
	return sy_condition_read_spec(sy_condition_document(state, number), spec);
}

static void test_specs_of_a_state(void)
{
	json_t *state = state_of_two(61, 91, "b");
	struct sy_netem spec;

	ok(read_spec(state, 0, &spec) == 0 && spec.delay_us == 60000, "the first link");
	ok(read_spec(state, 1, &spec) == 0 && spec.delay_us == 90000, "the second");
	ok(!sy_condition_document(state, 2), "there are no more");
	(void)json_object_set_new(sy_condition_document(state, 1), "requested",
				  json_string("delay=x"));
	is_int(read_spec(state, 1, &spec), -1, "what cannot be read");
	(void)json_object_del(state, "sites");
	(void)json_object_set_new(state, "requested", json_string("delay=5ms"));
	ok(read_spec(state, 0, &spec) == 0 && spec.delay_us == 5000, "without sites");
	ok(!sy_condition_document(state, 1), "it is one");
	json_decref(state);
}

/* A peer that did not answer before is not measured again: its reason is at each moment. */
static void test_no_peer(void)
{
	json_t *state = state_of_two(61, 91, "b"), *missing;

	sy_conditions_measure(state, "before", 0);
	sy_conditions_measure(state, "during_start", 0);
	missing = json_object_get(sy_condition_document(state, 1), "missing");
	is_string(json_string_value(json_object_get(missing, "rtt.during_start")),
		  "there is no peer to measure the round-trip time to", "why");
	is_string(json_string_value(
		      json_object_get(json_object_get(state, "missing"), "rtt.during_start")),
		  "each link has its own, under sites.links", "of the whole");
	json_decref(state);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/wan.sites", folder);
	test_grammar();
	test_reading();
	test_many_conditions();
	test_refusals();
	test_refusals_of_a_node();
	test_judging();
	test_specs_of_a_state();
	test_no_peer();
	(void)rmdir(folder);
	return done_testing();
}
