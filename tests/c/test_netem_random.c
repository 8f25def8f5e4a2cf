/* Random specifications come back as they were; random bytes are refused and do no harm.
 * SY_SEED=N repeats a run. */
#include "tap.h"

#include "netem/spec/spec.h"
#include "netem/spec/compound_values.h"
#include "netem/spec/values.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS 20000

static unsigned int choose_seed(void)
{
	const char *text = getenv("SY_SEED");

	return text ? (unsigned int)strtoul(text, NULL, 10) : (unsigned int)time(NULL);
}

/* 0 to most, small and large ones alike. */
static int64_t up_to(int64_t most)
{
	int64_t value = ((int64_t)random() << 31 | random()) >> random() % 62;

	return value % (most + 1);
}

static bool maybe(void)
{
	return random() % 2;
}

static int32_t random_percent(void)
{
	return maybe() ? (int32_t)up_to(100) * (SY_WHOLE_PPB / 100)
		       : (int32_t)up_to(SY_WHOLE_PPB / 10) * 10;
}

static void choose_delay(struct sy_netem *spec)
{
	spec->has_delay = true;
	spec->delay_us = up_to(SY_DELAY_MAX_US);
	if (maybe())
		spec->jitter_us =
		    up_to(spec->delay_us < SY_JITTER_MAX_US ? spec->delay_us : SY_JITTER_MAX_US);
	if (spec->jitter_us)
		spec->distribution = (enum sy_distribution)(random() % 5);
	if (spec->distribution == SY_TABLE)
		(void)snprintf(spec->table, sizeof(spec->table), "t%ld", random());
}

static struct sy_gemodel random_gemodel(void)
{
	struct sy_gemodel model = {random_percent(), random_percent(), random_percent(),
				   random_percent()};

	if (maybe())
		model.one_minus_k_ppb = 0;
	return model;
}

/* Chances that leave each state again. */
static struct sy_loss_state random_state(void)
{
	struct sy_loss_state state = {.p13_ppb = random_percent() / 20 * 10, .p31_ppb = 1000};

	state.p31_ppb += random_percent() / 40 * 10;
	state.p32_ppb = maybe() ? random_percent() / 40 * 10 : 0;
	state.p23_ppb = maybe() ? SY_WHOLE_PPB : 10 + random_percent() / 20 * 10;
	state.p14_ppb = maybe() ? random_percent() / 20 * 10 : 0;
	return state;
}

static void choose_loss(struct sy_netem *spec)
{
	long which = random() % 3;

	spec->has_gemodel = which == 0;
	spec->has_state = which == 1;
	spec->has_loss = which == 2;
	spec->has_ecn = maybe();
	if (spec->has_gemodel)
		spec->gemodel = random_gemodel();
	else if (spec->has_state)
		spec->state = random_state();
	else
		spec->loss_ppb = random_percent();
}

static void choose_rate(struct sy_netem *spec)
{
	spec->has_rate = true;
	spec->rate_bit_per_s = 8 + 8 * up_to(SY_RATE_MAX_BIT / 8 - 1);
	spec->has_overhead = maybe();
	if (spec->has_overhead)
		spec->overhead.packet_bytes = (int32_t)up_to(1514) - 14;
	if (spec->has_overhead && maybe())
		spec->overhead.cell_bytes = (int32_t)up_to(65535);
	if (spec->overhead.cell_bytes)
		spec->overhead.cell_overhead_bytes = (int32_t)up_to(1500);
}

static void choose_slot(struct sy_netem *spec)
{
	spec->has_slot = true;
	spec->slot.max_us = 1 + up_to(SY_DELAY_MAX_US - 1);
	spec->slot.min_us = up_to(spec->slot.max_us);
	spec->slot.packets = maybe() ? (int32_t)up_to(INT32_MAX) : 0;
	spec->slot.bytes = maybe() ? (int32_t)up_to(INT32_MAX) : 0;
	if (!maybe())
		return;
	spec->slot.distribution = maybe() ? SY_NORMAL : SY_PARETO;
	spec->slot.mean_us = 1 + up_to(SY_DELAY_MAX_US - 1);
	spec->slot.jitter_us =
	    1 +
	    up_to((spec->slot.mean_us < SY_JITTER_MAX_US ? spec->slot.mean_us : SY_JITTER_MAX_US) -
		  1);
	sy_slot_spread(&spec->slot);
}

#define RANDOM_TIME()	  up_to(SY_DELAY_MAX_US)
#define RANDOM_WHOLE_MS() (1000 + 1000 * up_to(119999))
#define RANDOM_PERCENT()  random_percent()
#define RANDOM_COUNT()	  (1 + up_to(UINT32_MAX - 1))

#define CHOOSE_PLAIN(id, kind)                                                                     \
	spec->has_##id = maybe();                                                                  \
	if (spec->has_##id)                                                                        \
		spec->SY_FIELD_##kind(id) = RANDOM_##kind();
#define CHOOSE_OWN(id, kind)

static void choose_numbers(struct sy_netem *spec)
{
#define KEY(id, key, role, kind, grammar, ...) CHOOSE_##grammar(id, kind)
#include "facts/netem_keys.def"
	if (!spec->delay_us) { /* nothing to be ahead of */
		spec->has_reorder = false;
		spec->reorder_ppb = 0;
	}
}

/* One more `to` and one more `port`, different from those before by the index in it. */
static void choose_target(struct sy_netem *spec, int index)
{
	char address[64];

	if (maybe())
		(void)snprintf(address, sizeof(address), "%ld.%ld.%d.0/24", random() % 256,
			       random() % 256, index);
	else
		(void)snprintf(address, sizeof(address), "2001:%lx:%x::/%ld", random() % 65536,
			       index, 48 + random() % 81);
	spec->to_count += sy_parse_network(address, &spec->to[index], NULL) == 0;
	spec->port[index] = (uint16_t)(1 + index + SY_NETEM_TARGETS * (random() % 8000));
	spec->port_count++;
}

static void choose(struct sy_netem *spec)
{
	memset(spec, 0, sizeof(*spec));
	if (maybe())
		choose_delay(spec);
	if (maybe())
		choose_loss(spec);
	if (maybe())
		choose_rate(spec);
	if (maybe())
		choose_slot(spec);
	spec->has_seed = maybe();
	spec->seed = spec->has_seed ? up_to(INT64_MAX - 1) : 0;
	choose_numbers(spec);
	spec->has_duplicate |= !spec->has_delay; /* something to do */
	for (long i = random() % (SY_NETEM_TARGETS + 1); i > 0; i--)
		choose_target(spec, spec->to_count);
	if (maybe())
		(void)snprintf(spec->device, sizeof(spec->device), "e%ld", random());
	spec->direction = (enum sy_direction)(random() % 3);
}

static void test_round_trip(void)
{
	int refused = 0, other_spec = 0, other_text = 0, too_long = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct sy_netem spec, again;
		char text[SY_NETEM_SIZE], text_again[SY_NETEM_SIZE];
		struct sy_error err;

		choose(&spec);
		too_long += sy_netem_format(&spec, text) >= SY_NETEM_SIZE;
		if (sy_netem_parse(text, &again, &err) < 0) {
			(void)printf("# %s\n", err.text);
			refused++;
			continue;
		}
		other_spec += memcmp(&spec, &again, sizeof(spec)) != 0;
		(void)sy_netem_format(&again, text_again);
		other_text += strcmp(text, text_again) != 0;
	}
	is_int(refused, 0, "canonical texts that were refused");
	is_int(too_long, 0, "canonical texts that do not fit");
	is_int(other_spec, 0, "specifications that came back otherwise");
	is_int(other_text, 0, "texts that were written otherwise");
}

static char random_byte(void)
{
	static const char meant[] = ",=~/:%.-0123456789umsgkbit";

	if (maybe())
		return (char)(1 + random() % 255);
	return meant[(size_t)random() % (sizeof(meant) - 1)];
}

/* A specification in which some bytes are others, or bytes alone; `text` holds SY_NETEM_SIZE. */
static void fill(char *text)
{
	struct sy_netem spec;
	size_t length;

	choose(&spec);
	length = sy_netem_format(&spec, text);
	for (long i = random() % 4; i > 0; i--)
		text[(size_t)random() % length] = random_byte();
	for (size_t i = 0; random() % 8 == 0 && i < length; i++)
		text[i] = random_byte();
	text[maybe() ? length : (size_t)random() % length] = '\0';
}

static void test_nonsense(void)
{
	int read = 0, wordless = 0, unstable = 0;

	for (int round = 0; round < ROUNDS; round++) {
		char text[SY_NETEM_SIZE], canonical[SY_NETEM_SIZE];
		struct sy_netem spec, again;
		struct sy_error err = {{0}};

		fill(text);
		if (sy_netem_parse(text, &spec, &err) == 0) {
			read++;
			(void)sy_netem_format(&spec, canonical);
			unstable += sy_netem_parse(canonical, &again, &err) < 0 ||
				    memcmp(&spec, &again, sizeof(spec)) != 0;
			continue;
		}
		wordless += strncmp(err.text, "netem: ", 7) != 0;
		for (const char *c = err.text; *c; c++)
			wordless += *c < ' ' || *c > '~';
	}
	is_int(wordless, 0, "errors without words, or with bytes that are not printable");
	is_int(unstable, 0, "what was read came back otherwise");
	ok(read > 0 && read < ROUNDS, "%d of %d were specifications still", read, ROUNDS);
}

int main(void)
{
	unsigned int seed = choose_seed();

	(void)printf("# SY_SEED=%u\n", seed);
	srandom(seed);
	test_round_trip();
	test_nonsense();
	return done_testing();
}
