/* What a sampler has counted, from its answer. */
#include "tap.h"

#include "job/comment.h"

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

static void test_no_counts(void)
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
	test_answer();
	test_no_counts();
	return done_testing();
}
