/* No job uses CPU faster than the node has CPUs. */
#include "tap.h"

#include "counters/cpu_guard.h"

#include <unistd.h>

#define MS 1000
#define S  1000000

static struct sy_cpu_guard guard;

static int64_t tell(int64_t cpu_us, int64_t now_us)
{
	int64_t from = now_us - 1 * MS; /* a sample takes a moment */

	return sy_cpu_guard_tell(&guard, cpu_us, from, from, now_us);
}

static int64_t too_much(int64_t for_us)
{
	return (guard.cpus + 1) * for_us + 100 * MS;
}

static void test_what_can_be_is_told(void)
{
	sy_cpu_guard_init(&guard, 0);
	is_int(guard.cpus, sysconf(_SC_NPROCESSORS_ONLN), "the node's CPUs");
	is_int(tell(95 * MS, 100 * MS), 95 * MS, "one CPU busy");
	is_int(tell(95 * MS + guard.cpus * 100 * MS, 200 * MS), 95 * MS + guard.cpus * 100 * MS,
	       "all CPUs busy");
	is_int(guard.held_us, 0, "nothing held back");
}

static void test_a_jump_that_comes_down_is_never_told(void)
{
	int64_t jump = too_much(100 * MS);

	sy_cpu_guard_init(&guard, 0);
	is_int(tell(500 * MS, 900 * MS), 500 * MS, "before");
	is_int(tell(500 * MS + jump, 1000 * MS), 500 * MS, "the jump");
	is_int(guard.held_us, jump, "how much is held back");
	is_int(tell(510 * MS, 1100 * MS), 510 * MS, "after");
	is_int(guard.held_us, 0, "it was no CPU at all");
}

static void test_a_jump_that_stays_is_told_when_it_can_be(void)
{
	int64_t jump = 500 * MS + (guard.cpus + 1) * 1 * S;

	sy_cpu_guard_init(&guard, 0);
	is_int(tell(500 * MS, 900 * MS), 500 * MS, "before");
	is_int(tell(jump, 1000 * MS), 500 * MS, "held back at first");
	is_int(tell(jump, 1500 * MS), 500 * MS, "and later");
	is_int(guard.held_us, jump - 500 * MS, "all of it");
	is_int(tell(jump, 3 * S), jump, "told when that much can have been used");
	is_int(guard.held_us, 0, "and no longer held back");
}

static void test_children_never_seen_show_late(void)
{
	sy_cpu_guard_init(&guard, 0);
	(void)tell(0, 10 * S);
	is_int(sy_cpu_guard_tell(&guard, guard.cpus * 1 * S, 9 * S, 10 * S, 10 * S + 100 * MS),
	       guard.cpus * 1 * S, "a root that was read a second ago");
}

int main(void)
{
	test_what_can_be_is_told();
	test_a_jump_that_comes_down_is_never_told();
	test_a_jump_that_stays_is_told_when_it_can_be();
	test_children_never_seen_show_late();
	return done_testing();
}
