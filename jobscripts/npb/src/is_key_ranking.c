/* One ranking of IS, section 2.2.5 of the report, steps 4.a to 4.c. */
#include <string.h>

#include "is.h"
#include "npb.h"

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

void is_rank_keys(struct is_sort *s, struct npb_run *run, int i)
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
