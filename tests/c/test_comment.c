/* The short comment of a job, its place among other programs' text in Slurm's AdminComment, and the
 * sampler's answer that it is made from. */
#include <stdlib.h>

#include "tap.h"

#include "job/comment.h"

static char *format_short(const struct sy_comment *comment)
{
	char *text = sy_comment_short(comment);

	ok(text != NULL, "a comment");
	return text;
}

/* As long as it gets in everyday use: a job with a tag that was alone on its node. */
static void test_short_comment(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.exclusive = SY_ALONE};
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char *text;

	(void)sy_tags_add(&tags, "input=small", NULL);
	sy_node_kind_from_record(
	    &comment.kind,
	    "{\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":{\"name\":"
	    "\"kvm\"},\"container\":{\"name\":\"none\"}},\"kernel\":{\"release\":"
	    "\"6.12.48+deb13-cloud-amd64\"}}}");
	for (int i = 0; i < SY_TOTALS; i++) {
		totals.known[i] = true;
		totals.value[i] = sy_is_micro(sy_total_facts[i].unit) ? 86400.5 : 123456789012.0;
	}
	text = format_short(&comment);
	is_string(
	    text,
	    "{\"node_type\":\"virtual\",\"vm\":\"kvm\",\"kernel\":\"6.12.48+deb13-cloud-amd64\","
	    "\"tags\":{\"input\":\"small\"},\"nodes\":1,\"elapsed_s\":86400.5,"
	    "\"energy_j\":86400.5,\"gpu_energy_j\":86400.5,\"cpu_s\":86400.5,"
	    "\"cpu_unseen_s\":86400.5,\"max_memory_bytes\":123456789012,"
	    "\"rchar_bytes\":123456789012,\"wchar_bytes\":123456789012,"
	    "\"read_bytes\":123456789012,\"write_bytes\":123456789012,"
	    "\"rx_bytes\":123456789012,\"tx_bytes\":123456789012,\"exclusive\":true}",
	    "what goes without saying is not said");
	free(text);
}

/* From the sampler's answer: the accounting has no room for "it may be more". */
static void test_figures_of_processes_that_nobody_counted_are_no_totals(void)
{
	static struct sy_tags tags;
	struct sy_totals totals;
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char *text;

	is_int(sy_totals_from_json(&totals, "{\"exclusive\":0,\"elapsed_s\":2.5,\"cpu_s\":0.5,"
					    "\"wchar_bytes\":7,\"uncounted\":1}"),
	       true, "an answer");
	text = format_short(&comment);
	ok(strstr(text, "\"elapsed_s\":2.5") && !strstr(text, "\"cpu_s\":") &&
	       !strstr(text, "\"wchar_bytes\":"),
	   "the time is told, what processes used is not");
	ok(strstr(text, "\"not all of the job's processes were counted\":[\"cpu_s\"") != NULL,
	   "and why");
	free(text);
}

/* The cgroup has counted them, too: its CPU and its memory are totals, without their bytes. */
static void test_figures_of_the_cgroup_hold_where_processes_were_not_seen(void)
{
	static const char answer[] =
	    "{\"cpu_s\":20,\"cpu_unseen_s\":10,\"max_memory_bytes\":5000000,"
	    "\"memory_source\":\"%s\",\"wchar_bytes\":7,\"unseen\":1}";
	static struct sy_tags tags;
	struct sy_totals totals;
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char line[200], *text;

	(void)snprintf(line, sizeof(line), answer, "cgroup2");
	(void)sy_totals_from_json(&totals, line);
	text = format_short(&comment);
	ok(strstr(text, "\"cpu_s\":20.0,\"cpu_unseen_s\":10.0,\"max_memory_bytes\":5000000,"
			"\"memory_source\":\"cgroup2\"") &&
	       !strstr(text, "\"wchar_bytes\":"),
	   "what the cgroup has counted: %s", text);
	ok(strstr(text, "\"not all processes were seen (cpu_unseen_s)\":[\"rchar_bytes\"") != NULL,
	   "and why the rest is missing");
	free(text);
	(void)snprintf(line, sizeof(line), answer, "processes");
	(void)sy_totals_from_json(&totals, line);
	text = format_short(&comment);
	ok(strstr(text, "\"cpu_s\":20.0") && !strstr(text, "\"max_memory_bytes\":"),
	   "memory of those that were seen is no total: %s", text);
	free(text);
}

/* A cgroup, the sum of resident sets and the largest process differ by a factor of 2 to 4. */
static void test_how_memory_was_counted_is_beside_it(void)
{
	static struct sy_tags tags;
	struct sy_totals totals;
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char *text;

	(void)sy_totals_from_json(&totals,
				  "{\"max_memory_bytes\":5000000,\"memory_source\":\"processes\"}");
	text = format_short(&comment);
	ok(strstr(text, "\"max_memory_bytes\":5000000,\"memory_source\":\"processes\"") != NULL,
	   "its source: %s", text);
	free(text);
	(void)sy_totals_from_json(&totals,
				  "{\"max_memory_bytes\":null,\"memory_source\":\"processes\"}");
	text = format_short(&comment);
	ok(!strstr(text, "memory_source"), "no source of what is not known");
	free(text);
}

static void test_short_comment_says_what_is_not_known(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.exclusive = SY_SHARED};
	struct sy_comment comment = {.tags = &tags, .nodes = 2, .totals = &totals};
	char *text;

	for (int i = 0; i < SY_TOTALS; i++)
		totals.known[i] = i != SY_ENERGY_J;
	sy_node_kind_from_record(
	    &comment.kind, "{\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":"
			   "{\"name\":null},\"container\":{\"name\":\"docker\"}}},\"missing\":{"
			   "\"energy.energy_j\":\"no RAPL: /sys/class/powercap is absent\"}}");
	text = format_short(&comment);
	ok(strstr(text,
		  "{\"node_type\":\"virtual\",\"vm\":null,\"container\":\"docker\",\"nodes\":") ==
	       text,
	   "a layer that is not known is not one that is not there: %s", text);
	ok(strstr(text, "\"nodes\":2,\"nodes_measured\":1,\"partial\":true,") &&
	       !strstr(text, "_scope"),
	   "not all nodes were measured, which is said");
	ok(strstr(text, "\"exclusive\":false,\"missing\":{\"no RAPL\":[\"energy_j\"],"
			"\"of the whole node\":[\"rx_bytes\",\"tx_bytes\"]}}"),
	   "each reason once, in its first words");
	free(text);
}

static void test_refused(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.exclusive = SY_NOT_SAID};
	struct sy_comment comment = {.tags = &tags,
				     .nodes = 1,
				     .totals = &totals,
				     .netem = "delay=1ms",
				     .netem_valid = -1,
				     .refused = "--netem=delay=1ms: no \"sch_netem\""};
	char *text = format_short(&comment);

	ok(strstr(text, "},\"netem\":\"delay=1ms\","
			"\"refused\":\"--netem=delay=1ms: no \\\"sch_netem\\\"\"}"),
	   "what was refused, and why: %s", text);
	free(text);
}

static void test_order(void)
{
	const char *present = "{\"site\":{\"elapsed_s\":9},\"steelyard\":{\"elapsed_s\":3.5}}";

	ok(sy_comment_is_later(present, "{\"elapsed_s\":3.25}"), "a later step has written more");
	ok(!sy_comment_is_later(present, "{\"elapsed_s\":3.75}"), "an earlier one has not");
	ok(!sy_comment_is_later(NULL, "{\"elapsed_s\":3.75}"), "nobody has");
	ok(!sy_comment_is_later("JS1:H4sI", "{\"elapsed_s\":3.75}"), "somebody else has");
}

static void test_merge(void)
{
	static const char own[] = "{\"cpu_s\":1}", key[] = "\"steelyard\":{\"cpu_s\":1}}";
	static const struct {
		const char *present, *kept;
	} good[] = {
	    {NULL, "{"},
	    {"", "{"},
	    {" \n", "{"},
	    {"{}", "{"},
	    {"{ }", "{"},
	    {"{\"a\":1}", "{\"a\":1,"},
	    {"{\"a\": 0.10, \"b\":[{\"c\":\"},{\\\"\"}]}\n",
	     "{\"a\": 0.10,\"b\":[{\"c\":\"},{\\\"\"}],"},
	    {"{\"steelyard\":{\"cpu_s\":9,\"x\":[1,2]}}", "{"},
	    {"{\"a\":1,\"steelyard\":{\"cpu_s\":9},\"b\":2}", "{\"a\":1,\"b\":2,"},
	    {"{\"steelyards\":3,\"tags\":{}}", "{\"steelyards\":3,\"tags\":{},"},
	    {"{\"steely\\u0061rd\":{\"cpu_s\":9},\"\\u0061\":1}", "{\"\\u0061\":1,"},
	    {"{\"steely\\u0062rd\":7,\"\\n\":1}", "{\"steely\\u0062rd\":7,\"\\n\":1,"},
	};
	static const char *const foreign[] = {
	    "JS1:H4sIAAAA", "x", "[1]", "{\"a\":1", "\"{}\"", "{\"a\":1}{}", "{\"a\":1,\"a\":2}"};
	static char longest[SY_ADMIN_COMMENT_MAX];
	const char *reason;
	char expected[256], *text;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		(void)snprintf(expected, sizeof(expected), "%s%s", good[i].kept, key);
		text = sy_comment_merge(good[i].present, own, &reason);
		is_string(text, expected, good[i].present ? good[i].present : "nothing there");
		free(text);
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		text = sy_comment_merge(foreign[i], own, &reason);
		ok(!text && strstr(reason, "somebody else"), "left alone: %s", foreign[i]);
	}
	(void)snprintf(longest, sizeof(longest), "{\"a\":\"%065515d\"}", 0);
	text = sy_comment_merge(longest, own, &reason);
	ok(!text && strstr(reason, "no room"), "Slurm would cut it");
}

static void test_answer(void)
{
	struct sy_totals node, other;

	ok(sy_totals_from_json(&node, "{\"elapsed_s\":2.5,\"cpu_s\":1,\"max_memory_bytes\":500,"
				      "\"rchar_bytes\":7,\"energy_j\":null,\"exclusive\":0}"),
	   "the sampler's answer");
	ok(node.known[SY_CPU_S] && node.value[SY_CPU_S] == 1, "a number");
	is_int(node.exclusive, SY_SHARED, "it was not alone");
	ok(node.no_gpus && !node.known[SY_GPU_ENERGY_J], "no word of GPUs: there are none");
	ok(sy_totals_from_json(&other, "{\"gpu_energy_j\":null}") && !other.no_gpus &&
	       !other.known[SY_GPU_ENERGY_J],
	   "GPUs, and nobody knows whose");
	ok(!node.known[SY_ENERGY_J] && !node.known[SY_TX_BYTES], "null, and not there");
	ok(!sy_totals_from_json(&other, "[1]") && !sy_totals_from_json(&other, "{"), "no answer");
}

static void test_impossible_answer(void)
{
	struct sy_totals odd;

	ok(sy_totals_from_json(&odd, "{\"cpu_s\":-1,\"rchar_bytes\":1e300}") &&
	       !odd.known[SY_CPU_S] && !odd.known[SY_RCHAR_BYTES],
	   "what cannot have been counted is no number");
	ok(sy_is_countable(9007199254740992.0) && !sy_is_countable(1e16),
	   "as far as a double tells");
}

int main(void)
{
	test_short_comment();
	test_figures_of_processes_that_nobody_counted_are_no_totals();
	test_figures_of_the_cgroup_hold_where_processes_were_not_seen();
	test_how_memory_was_counted_is_beside_it();
	test_short_comment_says_what_is_not_known();
	test_refused();
	test_order();
	test_merge();
	test_answer();
	test_impossible_answer();
	return done_testing();
}
