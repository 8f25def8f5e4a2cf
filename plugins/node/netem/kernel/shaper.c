#include "netem/kernel/shaper.h"

#include <inttypes.h>

#define SLOWEST_HZ  100 /* tc-tbf(8): burst ≥ rate / HZ */
#define MOST_BYTES  2000000000LL
#define FRAME_BYTES 18 /* Ethernet header and VLAN tag, which tbf counts too */

static void percent(FILE *out, const char *word, int32_t ppb)
{
	(void)fprintf(out, " %s%" PRId32 ".%07" PRId32 "%%", word, ppb / 10000000, ppb % 10000000);
}

static void write_delay(FILE *out, const struct sy_netem *spec)
{
	(void)fprintf(out, " delay %" PRId64 "us", spec->delay_us);
	if (!spec->jitter_us)
		return;
	(void)fprintf(out, " %" PRId64 "us", spec->jitter_us);
	if (spec->distribution != SY_UNIFORM)
		(void)fprintf(out, " distribution %s",
			      spec->distribution == SY_TABLE
				  ? spec->table
				  : sy_distribution_names[spec->distribution]);
}

static void write_gemodel(FILE *out, const struct sy_gemodel *model)
{
	(void)fputs(" loss gemodel", out);
	percent(out, "", model->p_ppb);
	percent(out, "", model->r_ppb);
	percent(out, "", model->one_minus_h_ppb);
	percent(out, "", model->one_minus_k_ppb);
}

static void write_loss_state(FILE *out, const struct sy_loss_state *state)
{
	(void)fputs(" loss state", out);
	percent(out, "", state->p13_ppb);
	percent(out, "", state->p31_ppb);
	percent(out, "", state->p32_ppb);
	percent(out, "", state->p23_ppb);
	percent(out, "", state->p14_ppb);
}

static void write_rate(FILE *out, const struct sy_netem *spec)
{
	(void)fprintf(out, " rate %" PRId64 "bit", spec->rate_bit_per_s);
	if (spec->has_overhead)
		(void)fprintf(out, " %" PRId32 " %" PRId32 " %" PRId32, spec->overhead.packet_bytes,
			      spec->overhead.cell_bytes, spec->overhead.cell_overhead_bytes);
}

static void write_slot(FILE *out, const struct sy_slot *slot)
{
	if (slot->distribution != SY_UNIFORM)
		(void)fprintf(out, " slot distribution %s %" PRId64 "us %" PRId64 "us",
			      sy_distribution_names[slot->distribution], slot->mean_us,
			      slot->jitter_us);
	else
		(void)fprintf(out, " slot %" PRId64 "us %" PRId64 "us", slot->min_us, slot->max_us);
	if (slot->packets)
		(void)fprintf(out, " packets %" PRId32, slot->packets);
	if (slot->bytes)
		(void)fprintf(out, " bytes %" PRId32, slot->bytes);
}

#define TELL_TIME(out, word, us)      (void)fprintf(out, " %s %" PRId64 "us", word, us)
#define TELL_WHOLE_MS(out, word, us)  TELL_TIME(out, word, us)
#define TELL_PERCENT(out, word, ppb)  percent(out, word " ", ppb)
#define TELL_RATE(out, word, rate)    write_rate(out, spec)
#define TELL_COUNT(out, word, number) (void)fprintf(out, " %s %" PRId64, word, number)

static void write_netem(FILE *out, const struct sy_netem *spec, const struct sy_place *place)
{
	(void)fprintf(out, " netem limit %" PRId64, place->limit_packets);
	if (spec->has_delay)
		write_delay(out, spec);
	if (spec->has_gemodel)
		write_gemodel(out, &spec->gemodel);
	if (spec->has_state)
		write_loss_state(out, &spec->state);
	if (spec->has_ecn)
		(void)fputs(" ecn", out);
	if (spec->has_slot)
		write_slot(out, &spec->slot);
#define TELL_NUMBER(id, role, kind, word)                                                          \
	if (*(word) && SY_ASKED_##role(spec, id))                                                  \
		TELL_##kind(out, word, spec->SY_FIELD_##kind(id));
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, policy, most,    \
	      word, ...)                                                                           \
	SY_IF_NUMBER_##kind(TELL_NUMBER(id, role, kind, word))
#include "facts/netem_keys.def"
	(void)fputc('\n', out);
}

static int64_t at_most(int64_t value, int64_t most)
{
	return value < most ? value : most;
}

static void write_tbf(FILE *out, const struct sy_netem *spec, const struct sy_place *place)
{
	int64_t frame = place->mtu + FRAME_BYTES;
	int64_t burst = spec->rate_bit_per_s / 8 / SLOWEST_HZ;

	if (burst < 2 * frame)
		burst = 2 * frame;
	burst = at_most(burst, MOST_BYTES / 2);
	(void)fprintf(out, " tbf rate %" PRId64 "bit burst %" PRId64 "b limit %" PRId64 "b\n",
		      spec->rate_bit_per_s, burst,
		      at_most(place->limit_packets * frame + burst, MOST_BYTES));
}

void sy_write_shaper(FILE *out, const struct sy_netem *spec, const struct sy_place *place)
{
	if (place->tbf)
		write_tbf(out, spec, place);
	else
		write_netem(out, spec, place);
}
