/* RAPL counters whose wraps are undone: made-up counters against their known sums. */
#include "tap.h"

#include "meters/readings_to_joules.h"

/* xorshift64: a fixed sequence, so that a failure comes again. */
static uint64_t random_state = 88172645463325252ULL;

static int64_t random_below(int64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int64_t)(random_state % (uint64_t)limit);
}

/* Any power up to the limit, any step within the longest gap: the sum is exact. */
static void test_sums(void)
{
	int wrong = 0, invalid = 0;
	int64_t wraps = 0;

	for (int round = 0; round < 300; round++) {
		int64_t range = 1000000 + random_below(262143328850LL);
		int64_t true_uj = random_below(range), start = true_uj,
			now = random_below(1LL << 40);
		struct sy_energy energy;

		sy_energy_init(&energy, range);
		sy_energy_add(&energy, now, true_uj % range);
		for (int i = 0; i < 100; i++) {
			int64_t gap = 1 + random_below(sy_energy_max_gap_us(range));

			now += gap;
			true_uj += random_below(gap * SY_ENERGY_MAX_WATTS);
			sy_energy_add(&energy, now, true_uj % range);
		}
		invalid += !energy.valid;
		wrong += energy.sum_uj != true_uj - start;
		wraps += energy.wraps - true_uj / range + start / range;
	}
	is_int(invalid, 0, "300 counters stay valid");
	is_int(wrong, 0, "300 sums over wraps are exact");
	is_int(wraps, 0, "their wraps are counted");
}

static void test_gaps(void)
{
	int64_t range = 65532610987; /* µJ, as an AMD package has: 131 s at 500 W */
	struct sy_energy energy;

	is_int(sy_energy_max_gap_us(range), 131065221, "the longest gap, µs");
	sy_energy_init(&energy, range);
	sy_energy_add(&energy, 0, 5000000);
	sy_energy_add(&energy, 131065221, 6000000);
	ok(energy.valid && energy.sum_uj == 1000000, "just in time");
	sy_energy_add(&energy, 131065221 + 131065222, 7000000);
	ok(!energy.valid, "a gap in which a wrap may hide has no value");
	ok(strstr(energy.reason, "131.1 s") != NULL, "and says how long it was: %s", energy.reason);
	sy_energy_add(&energy, 131065221 + 131065223, 8000000);
	ok(!energy.valid && energy.sum_uj == 1000000, "and stays without");
}

static void test_oddities(void)
{
	struct sy_energy energy;

	sy_energy_init(&energy, 0);
	sy_energy_add(&energy, 0, 100);
	sy_energy_add(&energy, 1LL << 40, 200);
	ok(energy.valid && energy.sum_uj == 100, "an unknown range that has not wrapped");
	sy_energy_add(&energy, (1LL << 40) + 1, 50);
	ok(!energy.valid, "an unknown range that goes down");
	sy_energy_init(&energy, 1000);
	sy_energy_add(&energy, 0, 5000);
	sy_energy_add(&energy, 1, 10);
	ok(!energy.valid, "a counter above its own range");
	sy_energy_init(&energy, 1000);
	sy_energy_invalidate(&energy, "no right");
	sy_energy_invalidate(&energy, "later");
	is_string(energy.reason, "no right", "the first reason stays");
}

/* A driver that was loaded again starts at 0: no joules are made up. */
static void test_reset(void)
{
	int64_t range = 262143328850;
	struct sy_energy energy;

	sy_energy_init(&energy, range);
	sy_energy_add(&energy, 0, 100000000000);
	sy_energy_add(&energy, 1000000, 100000200000);
	sy_energy_add(&energy, 2000000, 50000);
	ok(!energy.valid && energy.sum_uj == 200000, "a reset has no value: %s", energy.reason);
	sy_energy_init(&energy, range);
	sy_energy_add(&energy, 0, range - 3000000000);
	sy_energy_add(&energy, 100000, range - 3000000000);
	sy_energy_add(&energy, 900000, 0);
	ok(energy.valid && energy.sum_uj == 3000000000, "a node's wrap at 3 kW is one");
}

/* Watts: 100 W, then 300 W, read each second. */
static void test_power(void)
{
	struct sy_energy energy;

	sy_energy_init_power(&energy, 1000000, 0);
	sy_energy_add_power(&energy, 0, 100000000);
	is_int(energy.sum_uj, 0, "one reading is no time");
	sy_energy_add_power(&energy, 1000000, 100000000);
	sy_energy_add_power(&energy, 2000000, 300000000);
	is_int(energy.sum_uj, 100000000 + 200000000, "between two it has changed evenly");
	is_int(energy.last_us - energy.first_us, 2000000, "the time that this stands for");
	sy_energy_init_power(&energy, 1000000, 1000000);
	sy_energy_add_power(&energy, 0, 100000000);
	sy_energy_add_power(&energy, 1000000, 100000000);
	sy_energy_add_power(&energy, 2100000, 300000000);
	is_int(energy.sum_uj, 100000000 + 330000000, "the mean of the time before stands for it");
	sy_energy_add_power(&energy, 4100000, 100000000);
	is_int(energy.sum_uj, 430000000 + 400000000, "but not for a longer one");
	sy_energy_add_power(&energy, 4100000 + 11000000, 100000000);
	ok(energy.valid, "ten periods late");
	sy_energy_add_power(&energy, 15100000 + 11000001, 100000000);
	ok(!energy.valid && strstr(energy.reason, "11.0 s"), "too late: %s", energy.reason);
}

int main(void)
{
	test_power();
	test_sums();
	test_gaps();
	test_oddities();
	test_reset();
	return done_testing();
}
