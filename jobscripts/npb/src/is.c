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
#include <string.h>

#include "npb.h"
#include "npb_comm.h"

enum { IS_TESTS = 5, IS_RANKINGS = 10 };

/* 2^total_bits keys below 2^key_bits. In ranking i, key number test_index[t] must have the rank
 * test_rank[t] + sign[t] (i - lag[t]). */
struct is_problem {
	int total_bits, key_bits;
	int64_t test_index[IS_TESTS];
	int64_t test_rank[IS_TESTS];
	int sign[IS_TESTS], lag[IS_TESTS];
};

struct is_sort {
	const struct is_problem *problem;
	int bits;     /* a bucket has 2^bits values */
	int buckets;  /* of all ranks together */
	int record;   /* numbers in `mine` and `total`: bucket sizes, test keys */
	int64_t keys; /* of this rank */
	int32_t *key; /* the sequence */
	int32_t *out; /* the keys by bucket */
	int32_t *in;  /* keys of the rank's buckets, by sender; with one rank: `out` */
	int64_t in_size;
	uint32_t *mine;	   /* bucket sizes and test keys of this rank */
	uint32_t *place;   /* where each bucket begins in `out` */
	uint32_t *total;   /* keys in each bucket, and test keys, of all ranks */
	int *first_bucket; /* of each rank, and one more */
	struct npb_blocks send, receive;
	uint32_t *rank_of; /* by key value from first_value on: how many keys are <= it */
	int64_t values, value_space;
	int64_t first_value, smaller; /* of the own interval; keys below it */
	int64_t received;
	int64_t passed; /* partial verifications, on this rank */
};

/* One ranking of IS, section 2.2.5 of the report, steps 4.a to 4.c. */

static void count_buckets(const struct is_sort *s)
{
	enum {
		TABLES = 4, /* neighbouring keys of one bucket do not wait for each other */
		SMALL = 1024
	};
	uint32_t table[TABLES][SMALL];
	const int32_t *restrict key = s->key;
	uint32_t *restrict mine = s->mine;
	const int bits = s->bits;
	int64_t i = 0;

	memset(mine, 0, (size_t)s->record * sizeof(*mine));
	if (s->buckets <= SMALL) {
		memset(table, 0, sizeof(table));
		for (; i + TABLES <= s->keys; i += TABLES) {
			for (int t = 0; t < TABLES; t++)
				table[t][key[i + t] >> bits]++;
		}
		for (int b = 0; b < s->buckets; b++)
			mine[b] = table[0][b] + table[1][b] + table[2][b] + table[3][b];
	}
	for (; i < s->keys; i++)
		mine[key[i] >> bits]++;
}

/* The test keys travel with the bucket sizes, one more than their value; 0: not on this rank. */
static void note_test_keys(const struct is_sort *s, int rank)
{
	for (int t = 0; t < IS_TESTS; t++) {
		const int64_t index = s->problem->test_index[t] - s->keys * rank;

		if (index >= 0 && index < s->keys)
			s->mine[s->buckets + t] = (uint32_t)s->key[index] + 1;
	}
}

/* Interval q ends with the bucket in which (q + 1) / ranks of all keys are reached. */
static void share_out_buckets(struct is_sort *s, int ranks)
{
	const uint64_t keys = (uint64_t)s->keys * (uint64_t)ranks;
	uint64_t reached = 0;
	int rank = 0;

	s->first_bucket[0] = 0;
	for (int b = 0; b < s->buckets; b++) {
		reached += s->total[b];
		while (rank + 1 < ranks && reached * (uint64_t)ranks >= (uint64_t)(rank + 1) * keys)
			s->first_bucket[++rank] = b + 1;
	}
	while (rank < ranks)
		s->first_bucket[++rank] = s->buckets;
}

static void set_places(struct is_sort *s)
{
	s->place[0] = 0;
	for (int b = 0; b < s->buckets; b++)
		s->place[b + 1] = s->place[b] + s->mine[b];
}

/* Each key to its bucket. */
static void fill_buckets(struct is_sort *s)
{
	const int32_t *restrict key = s->key;
	int32_t *restrict out = s->out;
	uint32_t *restrict place = s->place;
	const int bits = s->bits;

	set_places(s);
	for (int64_t i = 0; i < s->keys; i++)
		out[place[key[i] >> bits]++] = key[i];
}

static void count_out(struct is_sort *s, int ranks)
{
	for (int r = 0, sent = 0; r < ranks; r++) {
		s->send.place[r] = sent;
		s->send.count[r] = 0;
		for (int b = s->first_bucket[r]; b < s->first_bucket[r + 1]; b++)
			s->send.count[r] += (int)s->mine[b];
		sent += s->send.count[r];
	}
}

static void make_room(struct is_sort *s)
{
	if (s->received <= s->in_size)
		return;
	npb_free(s->in);
	s->in_size = s->received + s->received / 50 + 64;
	s->in = npb_alloc((size_t)s->in_size, sizeof(*s->in));
}

static void exchange_keys(struct is_sort *s, struct npb_run *run)
{
	npb_alltoall(run, s->send.count, s->receive.count, 1, MPI_INT);
	s->received = 0;
	for (int r = 0; r < run->ranks; r++) {
		s->receive.place[r] = (int)s->received;
		s->received += s->receive.count[r];
	}
	make_room(s);
	npb_alltoallv(run, s->out, s->send, s->in, s->receive, MPI_INT32_T);
}

static void move_keys(struct is_sort *s, struct npb_run *run)
{
	memcpy(s->total, s->mine, (size_t)s->record * sizeof(*s->total));
	npb_allreduce(run, s->total, s->record, MPI_UINT32_T, MPI_SUM);
	share_out_buckets(s, run->ranks);
	fill_buckets(s);
	count_out(s, run->ranks);
	if (run->ranks > 1) {
		exchange_keys(s, run);
		return;
	}
	s->in = s->out;
	s->received = s->keys;
}

/* The own interval of values, and how many keys lie below it. */
static void set_interval(struct is_sort *s, int rank)
{
	const int begin = s->first_bucket[rank], end = s->first_bucket[rank + 1];

	s->first_value = (int64_t)begin << s->bits;
	s->values = (int64_t)(end - begin) << s->bits;
	s->smaller = 0;
	for (int b = 0; b < begin; b++)
		s->smaller += s->total[b];
	if (s->values > s->value_space) {
		npb_free(s->rank_of);
		s->value_space = s->values + (INT64_C(4) << s->bits);
		s->rank_of = npb_alloc((size_t)s->value_space, sizeof(*s->rank_of));
	}
	memset(s->rank_of, 0, (size_t)s->values * sizeof(*s->rank_of));
}

static void rank_values(struct is_sort *s)
{
	uint32_t *restrict count = s->rank_of;
	const int32_t *restrict key = s->in;
	const int32_t first = (int32_t)s->first_value;
	uint32_t running = (uint32_t)s->smaller;

	for (int64_t i = 0; i < s->received; i++)
		count[key[i] - first]++;
	for (int64_t v = 0; v < s->values; v++)
		count[v] = running += count[v];
}

/* Step 4.c: the ranks of the test keys that lie in the own interval. */
static void test_ranks(struct is_sort *s, int i)
{
	const struct is_problem *p = s->problem;

	for (int t = 0; t < IS_TESTS; t++) {
		const int64_t value = (int64_t)s->total[s->buckets + t] - 1 - s->first_value;
		int64_t found;

		if (value < 0 || value >= s->values)
			continue;
		found = value > 0 ? s->rank_of[value - 1] : s->smaller;
		s->passed += found == p->test_rank[t] + p->sign[t] * (i - p->lag[t]);
	}
}

/* One ranking; `i` counts from 1. */
static void is_rank_keys(struct is_sort *s, struct npb_run *run, int i)
{
	if (run->rank == 0) {
		s->key[i] = i;
		s->key[i + IS_RANKINGS] = (int32_t)((INT64_C(1) << s->problem->key_bits) - i);
	}
	count_buckets(s);
	npb_worked(s->keys);
	note_test_keys(s, run->rank);
	move_keys(s, run);
	set_interval(s, run->rank);
	rank_values(s);
	test_ranks(s, i);
}

/* The full verification of IS: by their ranks, all keys are put in order. */

/* Of keys before and after: a key lost, doubled or changed shows in one of them. */
struct sums {
	uint64_t keys, plain, squares;
};

static void add_key(struct sums *sums, uint64_t key)
{
	sums->keys++;
	sums->plain += key;
	sums->squares += key * key;
}

static struct sums sums_before(const struct is_sort *s)
{
	struct sums sums = {0, 0, 0};

	for (int64_t i = 0; i < s->keys; i++)
		add_key(&sums, (uint64_t)s->key[i]);
	return sums;
}

/* A received key to the place its rank says; what has no place there is left out. */
static void place_key(struct is_sort *s, int32_t *sorted, int64_t key)
{
	const int64_t at = (int64_t)--s->rank_of[key - s->first_value] - s->smaller;

	if (at >= 0 && at < s->received)
		sorted[at] = (int32_t)key;
}

/* Keys that are not smaller than the one before them, the first against the rank before. */
static int64_t count_in_order(const struct is_sort *s, const int32_t *sorted, struct npb_run *run,
			      struct sums *sums)
{
	int64_t edges[2] = {-1, -1}, in_order = 0, before = -1;
	int64_t *all = npb_alloc((size_t)run->ranks, sizeof(edges));

	if (s->received > 0) {
		edges[0] = sorted[0];
		edges[1] = sorted[s->received - 1];
	}
	npb_allgather(run, edges, all, 2, MPI_INT64_T);
	for (int r = 0; r < run->rank; r++)
		before = all[2 * r + 1] >= 0 ? all[2 * r + 1] : before;
	for (int64_t i = 0; i < s->received; i++) {
		in_order += sorted[i] >= before;
		before = sorted[i];
		add_key(sums, (uint64_t)sorted[i]);
	}
	npb_free(all);
	return in_order;
}

/* Both verifications; collective. */
static void is_verify(struct is_sort *s, struct npb_run *run)
{
	int32_t *sorted = npb_alloc((size_t)s->received, sizeof(*sorted));
	struct sums before = sums_before(s), after = {0, 0, 0};
	uint64_t figures[5];
	double same;

	for (int64_t i = 0; i < s->received; i++)
		place_key(s, sorted, s->in[i]);
	figures[0] = (uint64_t)count_in_order(s, sorted, run, &after);
	figures[1] = before.keys - after.keys; /* differences: 0 over all ranks, modulo 2^64 */
	figures[2] = before.plain - after.plain;
	figures[3] = before.squares - after.squares;
	figures[4] = (uint64_t)s->passed;
	npb_allreduce(run, figures, 5, MPI_UINT64_T, MPI_SUM);
	same = figures[1] == 0 && figures[2] == 0 && figures[3] == 0;
	npb_check(run, "test ranks", (double)figures[4], IS_TESTS * IS_RANKINGS, 0);
	npb_check(run, "keys in order", (double)figures[0], (double)(s->keys * run->ranks), 0);
	npb_check(run, "same keys", same, 1, 0);
	npb_free(sorted);
}

#define SEED UINT64_C(314159265)

static const struct is_problem is_problems[NPB_CLASSES] = {
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
