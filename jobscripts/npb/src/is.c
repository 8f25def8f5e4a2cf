/*
 * IS, "integer sort" (the report, section 2.2.5, kernel IS; numbers: section 2.3).
 *
 * Solved: N keys, each the sum of four uniform numbers times a quarter of the largest key, are
 * ranked ten times; the rank of a key is how many keys are smaller. Before ranking i, the keys i
 * and i + 10 of the sequence become i and B - i (step 4.a), so that no ranking can
 * be had from the one before. After each, the ranks of five keys are compared with official ones
 * (partial verification); at the end all keys are put in order by their ranks (full verification).
 *
 * Distributed: each rank has an equal, contiguous part of the sequence of keys, and ranks an
 * interval of key values: whole buckets of 2^b values, shared out so that the keys are about equal
 * in number.
 *
 * Communicated, per ranking: one MPI_Allreduce of the bucket sizes, one MPI_Alltoall of the numbers
 * of keys between each two ranks, and one MPI_Alltoallv of the keys, four bytes each.
 */
#include <stdlib.h>

#include "is.h"
#include "npb.h"

#define SEED UINT64_C(314159265)

const struct is_problem is_problems[NPB_CLASSES] = {
    [NPB_S] = {16,
	       11,
	       {48427, 17148, 23627, 62548, 4431},
	       {0, 18, 346, 64917, 65463},
	       {1, 1, 1, -1, -1},
	       {0, 0, 0, 0, 0}},
    [NPB_W] = {20,
	       16,
	       {357773, 934767, 875723, 898999, 404505},
	       {1249, 11698, 1039987, 1043896, 1048018},
	       {1, 1, -1, -1, -1},
	       {2, 2, 0, 0, 0}},
    [NPB_A] = {23,
	       19,
	       {2112377, 662041, 5336171, 3642833, 4250760},
	       {104, 17523, 123928, 8288932, 8388264},
	       {1, 1, 1, -1, -1},
	       {1, 1, 1, 1, 1}},
    [NPB_B] = {25,
	       21,
	       {41869, 812306, 5102857, 18232239, 26860214},
	       {33422937, 10244, 59149, 33135281, 99},
	       {-1, 1, 1, -1, 1},
	       {0, 0, 0, 0, 0}},
    [NPB_C] = {27,
	       23,
	       {44172927, 72999161, 74326391, 129606274, 21736814},
	       {61147, 882988, 266290, 133997595, 133525895},
	       {1, 1, 1, -1, -1},
	       {0, 0, 0, 0, 0}},
    [NPB_D] = {31,
	       27,
	       {1317351170, 995930646, 1157283250, 1503301535, 1453734525},
	       {1, 36538729, 1978098519, 2145192618, 2147425337},
	       {1, 1, -1, -1, -1},
	       {0, 0, 0, 0, 0}},
};

/* NASA's programs have 2^9 buckets in class S, else 2^10. */
static int bucket_bits(enum npb_class class, int key_bits)
{
	return key_bits - (class == NPB_S ? 9 : 10);
}

static void open_sort(struct is_sort *s, const struct npb_run *run)
{
	const size_t ranks = (size_t)run->ranks;

	s->problem = &is_problems[run->class];
	s->bits = bucket_bits(run->class, s->problem->key_bits);
	s->buckets = 1 << (s->problem->key_bits - s->bits);
	s->keys = (INT64_C(1) << s->problem->total_bits) / run->ranks;
	s->record = s->buckets + IS_TESTS;
	s->key = npb_alloc((size_t)s->keys, sizeof(*s->key));
	s->out = npb_alloc((size_t)s->keys, sizeof(*s->out));
	s->mine = npb_alloc((size_t)s->record, sizeof(*s->mine));
	s->place = npb_alloc((size_t)s->buckets + 1, sizeof(*s->place));
	s->total = npb_alloc((size_t)s->record, sizeof(*s->total));
	s->first_bucket = npb_alloc(ranks + 1, sizeof(*s->first_bucket));
	s->send.count = npb_alloc(ranks, sizeof(int));
	s->send.place = npb_alloc(ranks, sizeof(int));
	s->receive.count = npb_alloc(ranks, sizeof(int));
	s->receive.place = npb_alloc(ranks, sizeof(int));
}

static void close_sort(struct is_sort *s)
{
	if (s->in != s->out)
		npb_free(s->in);
	npb_free(s->key);
	npb_free(s->out);
	npb_free(s->mine);
	npb_free(s->place);
	npb_free(s->total);
	npb_free(s->rank_of);
	npb_free(s->first_bucket);
	npb_free(s->send.count);
	npb_free(s->send.place);
	npb_free(s->receive.count);
	npb_free(s->receive.place);
}

/* Key i is the whole part of B/4 (r(4i+1) + ... + r(4i+4)). */
static void make_keys(struct is_sort *s, int rank)
{
	enum { BLOCK = 1024 };
	const double fourth = npb_planted("coefficient") ? 1.01 : 1;
	const double quarter = (double)(INT64_C(1) << s->problem->key_bits) / 4;
	double r[4 * BLOCK];
	uint64_t seed = npb_jump(SEED, (uint64_t)(4 * s->keys * rank));

	for (int64_t begin = 0; begin < s->keys; begin += BLOCK) {
		const int64_t count = s->keys - begin < BLOCK ? s->keys - begin : BLOCK;

		npb_fill_uniform(&seed, r, (size_t)(4 * count));
		for (int64_t i = 0; i < count; i++) {
			const double *x = r + 4 * i;

			s->key[begin + i] =
			    (int32_t)(quarter * (x[0] + x[1] + x[2] + fourth * x[3]));
		}
	}
}

static void run_is(struct npb_run *run)
{
	struct is_sort s = {0};

	open_sort(&s, run);
	make_keys(&s, run->rank);
	is_rank_keys(&s, run, 1); /* untimed: touches all memory */
	s.passed = 0;
	npb_timer_start(run);
	for (int i = 1; i <= npb_steps(IS_RANKINGS); i++)
		is_rank_keys(&s, run, i);
	npb_timer_stop(run);
	run->mega_ops = (double)(s.keys * run->ranks) * IS_RANKINGS * 1e-6;
	is_verify(&s, run);
	npb_check_work(run, IS_RANKINGS * s.keys * run->ranks);
	close_sort(&s);
}

static void describe_is(struct npb_run *run)
{
	run->size[0] = INT64_C(1) << is_problems[run->class].total_bits;
	run->iterations = IS_RANKINGS;
}

static int most_ranks_is(enum npb_class class)
{
	return class == NPB_S ? 128 : 1024;
}

static uint64_t memory_is(enum npb_class class, int ranks)
{
	const uint64_t keys = (UINT64_C(1) << is_problems[class].total_bits) / (uint64_t)ranks;
	const uint64_t values = (UINT64_C(1) << is_problems[class].key_bits) / (uint64_t)ranks;

	/* Keys, sent and received ones, the ordered keys of the full verification. */
	return keys * (4 + 4 + 6 + 4) + values * 8 + (UINT64_C(64) << 20);
}

const struct npb_kernel npb_kernel = {
    .name = "IS",
    .operations = "keys ranked",
    .rule = NPB_POWER_OF_TWO,
    .narrow = true,
    .most_ranks = most_ranks_is,
    .memory_bytes = memory_is,
    .describe = describe_is,
    .run = run_is,
};
