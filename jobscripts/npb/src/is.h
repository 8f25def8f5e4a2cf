/* What the files of IS share: the problem, and the state of the sort on one rank. */
#ifndef IS_H
#define IS_H

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

extern const struct is_problem is_problems[NPB_CLASSES];

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

/* One ranking; `i` counts from 1. */
void is_rank_keys(struct is_sort *s, struct npb_run *run, int i);
/* Both verifications; collective. */
void is_verify(struct is_sort *s, struct npb_run *run);

#endif
