/* The readings that the kernel's timer leaves in its ring, as a sampler takes them: all in their
 * order, and none that no job can have reached. */
#include "tap.h"

#include <unistd.h>

#include "bpf/job.h"

#define SECOND 1000000000ULL

static struct sy_bpf_job ring;
static struct sy_bpf bpf = {.mapped = &ring};
static uint64_t taken[SY_BPF_TICKS];
static int count;

static void note(void *context, const struct sy_bpf_tick *tick)
{
	(void)context;
	taken[count++] = tick->used.cpu_ns;
}

static void add(uint64_t at_ns, uint64_t cpu_ns)
{
	ring.tick[ring.ticks % SY_BPF_TICKS] =
	    (struct sy_bpf_tick){.at_ns = at_ns, .used = {.cpu_ns = cpu_ns}};
	ring.ticks++;
}

static void test_order(void)
{
	for (uint64_t i = 1; i <= 3; i++)
		add((100 + i) * SECOND, i);
	is_int(sy_bpf_read_ticks(&bpf, note, NULL), 0, "none is lost");
	is_int(count, 3, "all are taken");
	is_int((long)taken[2], 3, "in their order");
}

/* 0x2f06000028baae00 was read once, of a job of 0.68 s. */
static void test_impossible(void)
{
	count = 0;
	add(104 * SECOND, 683322880);
	add(105 * SECOND, 0x2f06000028baae00);
	add(106 * SECOND, 684322880);
	is_int(sy_bpf_read_ticks(&bpf, note, NULL), 1, "an impossible one counts as lost");
	is_int(count, 2, "the others are taken");
	is_int((long)taken[1], 684322880, "the next one, too");
}

static void test_limit(void)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	struct sy_bpf_usage used = {.cpu_ns = (uint64_t)processors * 10 * SECOND};

	ok(sy_bpf_is_possible(&bpf, &used, 110 * SECOND), "all processors, all the time");
	used.cpu_ns = (uint64_t)processors * 12 * SECOND;
	ok(!sy_bpf_is_possible(&bpf, &used, 110 * SECOND), "more is not");
	bpf.processors = 8192;
	used.cpu_ns = 8192ULL * 1000000 * SECOND;
	ok(sy_bpf_is_possible(&bpf, &used, 2000100 * SECOND),
	   "half of 8,192 processors for 23 days, of which the limit has no room in 64 bits");
	used.cpu_ns = (uint64_t)-SECOND;
	ok(sy_bpf_is_possible(&bpf, &used, 110 * SECOND), "below 0, while a task joins");
}

static void test_late(void)
{
	count = 0;
	for (uint64_t i = 0; i < SY_BPF_TICKS + 5; i++)
		add(107 * SECOND + i, i);
	is_int(sy_bpf_read_ticks(&bpf, note, NULL), 6,
	       "of a full ring the oldest may be being written");
}

int main(void)
{
	ring.since_ns = 100 * SECOND;
	bpf.processors = sysconf(_SC_NPROCESSORS_CONF);
	test_order();
	test_impossible();
	test_limit();
	test_late();
	return done_testing();
}
