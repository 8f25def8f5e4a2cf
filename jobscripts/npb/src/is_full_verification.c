/* The full verification of IS: by their ranks, all keys are put in order. */
#include "is.h"
#include "npb.h"

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

void is_verify(struct is_sort *s, struct npb_run *run)
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
