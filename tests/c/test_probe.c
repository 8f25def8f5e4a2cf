/* The probe's pure parts: CPU lists, mount escapes, text for JSON, and the judging of witnesses.
 */
#include "base/json_document.h"
#include "base/number.h"
#include "counters/netdev_inventory.h"
#include "probe/detect.h"
#include "probe/probe.h"
#include "tap.h"

#include <string.h>

static void test_cpu_lists(void)
{
	static const struct {
		const char *text;
		int count;
	} cases[] = {
	    {"0", 1},	       {"0-3", 4}, {"0-3,8,10-11", 7}, {"0-1\n", 2},
	    {"", 0},	       {"x", -1},  {"3-1", -1},	       {"0-", -1},
	    {"0,,1", -1},      {"-1", -1}, {"0 1", -1},	       {"0-99999999999", -1},
	    {"0-9999", 10000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool marks[16] = {false};

		is_int(sy_parse_number_list(cases[i].text, marks, 16), cases[i].count,
		       "a CPU list");
	}
}

static void test_cpu_marks(void)
{
	bool marks[16] = {false};

	(void)sy_parse_number_list("1,4-5", marks, 16);
	ok(!marks[0] && marks[1] && !marks[3] && marks[4] && marks[5] && !marks[6],
	   "the CPUs of a list are marked, no others");
}

static void test_mount_escapes(void)
{
	static const char *const cases[][2] = {
	    {"/a\\040b", "/a b"},	  {"/a\\011b\\012c", "/a\tb\nc"},
	    {"/a\\134040", "/a\\040"},	  {"/a\\", "/a\\"},
	    {"/a\\04", "/a\\04"},	  {"/a\\999", "/a\\999"},
	    {"/\\303\\244", "/\303\244"}, {"", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "%s", cases[i][0]);
		sy_unescape_mount(text);
		is_string(text, cases[i][1], cases[i][0]);
	}
}

static void test_json_text(void)
{
	static const char *const cases[][2] = {
	    {"plain", "plain"},
	    {"\303\244", "\303\244"},
	    {"a\377b", "a\357\277\275b"},
	    {"\303", "\357\277\275"},
	    {"\355\240\200", "\357\277\275\357\277\275\357\277\275"}, /* a lone surrogate */
	    {"\300\200", "\357\277\275\357\277\275"},		      /* overlong */
	    {"\360\237\230\200\360\237", "\360\237\230\200\357\277\275\357\277\275"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = sy_json_text(cases[i][0]);

		is_string(json_string_value(json), cases[i][1], "bytes that are no UTF-8");
		json_decref(json);
	}
}

static const struct sy_refinement refinements[] = {{"qemu", "kvm"}, {NULL, NULL}};

struct verdict_case {
	const char *title;
	struct {
		int weight;
		const char *name;
	} witnesses[4];
	const char *name;
	enum sy_confidence confidence;
};

static const struct verdict_case verdicts[] = {
    {"no witness: not known", {{0, NULL}}, NULL, SY_WEAK},
    {"one sure witness", {{4, "kvm"}}, "kvm", SY_CERTAIN},
    {"a single hint", {{1, "kvm"}}, "kvm", SY_WEAK},
    {"a general name supports the special one", {{3, "qemu"}, {4, "kvm"}}, "kvm", SY_CERTAIN},
    {"whichever comes first", {{4, "kvm"}, {3, "qemu"}}, "kvm", SY_CERTAIN},
    {"only that there is one", {{2, "other"}}, "other", SY_WEAK},
    {"a name for what is there", {{2, "other"}, {3, "xen"}}, "xen", SY_CERTAIN},
    {"two names: the heavier, not certain", {{4, "kvm"}, {3, "xen"}}, "kvm", SY_WEAK},
    {"a stale file against namespaces", {{2, "docker"}, {3, "none"}}, "none", SY_WEAK},
    {"and against the root mount too",
     {{2, "docker"}, {3, "none"}, {2, "none"}},
     "none",
     SY_LIKELY},
    {"inside something, but not what the stale file says",
     {{2, "docker"}, {3, "other"}, {2, "none"}},
     "other",
     SY_WEAK},
    {"a tie is not enough for a layer", {{3, "docker"}, {3, "none"}}, "none", SY_WEAK},
};

static void test_verdicts(void)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		struct sy_layer layer = {.count = 0};

		for (size_t w = 0; w < 4 && verdicts[i].witnesses[w].name; w++)
			sy_add_evidence(&layer, verdicts[i].witnesses[w].weight,
					verdicts[i].witnesses[w].name, "test", "test");
		sy_decide_layer(&layer, "other", refinements);
		is_string(layer.name, verdicts[i].name, verdicts[i].title);
		is_string(sy_confidence_name(layer.confidence),
			  sy_confidence_name(verdicts[i].confidence), "  and how sure");
	}
}

static void test_too_many_witnesses(void)
{
	struct sy_layer layer = {.count = 0};

	for (int i = 0; i < 3 * SY_EVIDENCE_MAX; i++)
		sy_add_evidence(&layer, 1, "kvm", "test", "test");
	is_int((int64_t)layer.count, SY_EVIDENCE_MAX,
	       "witnesses beyond the last place are dropped");
}

int main(void)
{
	test_cpu_lists();
	test_cpu_marks();
	test_mount_escapes();
	test_json_text();
	test_verdicts();
	test_too_many_witnesses();
	is_string(sy_netdev_kind_name(SY_NETDEV_SRIOV_VF), "sriov-vf", "a kind's name");
	return done_testing();
}
