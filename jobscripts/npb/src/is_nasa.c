/*
 * IS with NASA's messages, per ranking: one MPI_Allreduce of the bucket sizes, one MPI_Alltoall of
 * how many keys go from whom to whom, and one MPI_Alltoallv of the whole keys, four bytes each.
 */
#include <string.h>

#include "is.h"
#include "npb_verify.h"

/* Each key to its bucket. */
static void fill_whole(struct is_sort *s)
{
	const int32_t *restrict key = s->key;
	int32_t *restrict out = s->whole_out;
	uint32_t *restrict place = s->place;
	const int bits = s->bits;

	is_set_places(s);
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
	npb_free(s->whole_in);
	s->in_size = s->received + s->received / 50 + 64;
	s->whole_in = npb_alloc((size_t)s->in_size, sizeof(*s->whole_in));
}

static void move_whole(struct is_sort *s, struct npb_run *run)
{
	npb_alltoall(run, s->send.count, s->receive.count, 1, MPI_INT);
	s->received = 0;
	for (int r = 0; r < run->ranks; r++) {
		s->receive.place[r] = (int)s->received;
		s->received += s->receive.count[r];
	}
	make_room(s);
	npb_alltoallv(run, s->whole_out, s->send, s->whole_in, s->receive, MPI_INT32_T);
}

void is_nasa_move(struct is_sort *s, struct npb_run *run)
{
	memcpy(s->total, s->mine, (size_t)s->record * sizeof(*s->total));
	npb_allreduce(run, s->total, s->record, MPI_UINT32_T, MPI_SUM);
	is_share_out_buckets(s, run->ranks);
	fill_whole(s);
	count_out(s, run->ranks);
	if (run->ranks > 1) {
		move_whole(s, run);
		return;
	}
	s->whole_in = s->whole_out;
	s->received = s->keys;
}

void is_nasa_rank(struct is_sort *s)
{
	uint32_t *restrict count = s->rank_of;
	const int32_t *restrict key = s->whole_in;
	const int32_t first = (int32_t)s->first_value;
	uint32_t running = (uint32_t)s->smaller;

	for (int64_t i = 0; i < s->received; i++)
		count[key[i] - first]++;
	for (int64_t v = 0; v < s->values; v++)
		count[v] = running += count[v];
}
