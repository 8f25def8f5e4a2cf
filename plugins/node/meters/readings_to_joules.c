#include "meters/readings_to_joules.h"

#include "meters/meter.h"

#include <stdio.h>

void sy_energy_init(struct sy_energy *energy, int64_t range_uj)
{
	*energy = (struct sy_energy){.range_uj = range_uj, .valid = true};
}

void sy_energy_init_power(struct sy_energy *energy, int64_t period_us, int64_t mean_us)
{
	*energy = (struct sy_energy){.max_gap_us = 10 * period_us + 1000000,
				     .mean_us = mean_us,
				     .valid = true,
				     .power = true};
}

int64_t sy_energy_max_gap_us(int64_t range_uj)
{
	return range_uj / SY_ENERGY_MAX_WATTS; /* µJ / W = µs */
}

void sy_energy_invalidate(struct sy_energy *energy, const char *reason)
{
	if (!energy->valid)
		return;
	energy->valid = false;
	(void)snprintf(energy->reason, sizeof(energy->reason), "%s", reason);
}

/* A value that no counter can have is unknown. */
static void add_sum(struct sy_energy *energy, int64_t more_uj)
{
	int64_t sum_uj;

	if (more_uj < 0 || __builtin_add_overflow(energy->sum_uj, more_uj, &sum_uj))
		sy_energy_invalidate(energy, "it reported more than can be counted");
	else
		energy->sum_uj = sum_uj;
}

/* A meter may update its counter once a second only: then one step holds a second's energy. */
static bool may_be_wrap(const struct sy_energy *energy, int64_t now_us, int64_t delta_uj)
{
	return delta_uj / SY_ENERGY_MAX_WRAP_WATTS <= now_us - energy->changed_us + 1000000;
}

static void add_gap(struct sy_energy *energy, int64_t now_us, int64_t counter_uj)
{
	int64_t gap_us = now_us - energy->last_us, delta = counter_uj - energy->last;

	if (energy->range_uj && gap_us > sy_energy_max_gap_us(energy->range_uj)) {
		energy->valid = false;
		(void)snprintf(energy->reason, sizeof(energy->reason),
			       "not read for %.1f s: at %d W the counter may have wrapped unseen",
			       (double)gap_us / 1e6, SY_ENERGY_MAX_WATTS);
		return;
	}
	if (delta < 0 && !energy->range_uj) {
		sy_energy_invalidate(energy, "the counter went down and its range is not known");
		return;
	}
	if (delta < 0) {
		delta += energy->range_uj;
		energy->wraps++;
	}
	if (delta < 0) {
		sy_energy_invalidate(energy, "the counter was above its max_energy_range_uj");
		return;
	}
	if (counter_uj < energy->last && !may_be_wrap(energy, now_us, delta)) {
		sy_energy_invalidate(energy,
				     "the counter was reset: it went down, and had not wrapped");
		return;
	}
	add_sum(energy, delta);
}

static void set_last(struct sy_energy *energy, int64_t now_us, int64_t value)
{
	if (!energy->started)
		energy->first_us = now_us;
	if (!energy->started || value != energy->last)
		energy->changed_us = now_us;
	energy->started = true;
	energy->last = value;
	energy->last_us = now_us;
}

void sy_energy_add(struct sy_energy *energy, int64_t now_us, int64_t counter_uj)
{
	if (!energy->valid)
		return;
	if (energy->started)
		add_gap(energy, now_us, counter_uj);
	set_last(energy, now_us, counter_uj);
}

void sy_energy_add_power(struct sy_energy *energy, int64_t now_us, int64_t power_uw)
{
	int64_t gap_us = now_us - energy->last_us;
	double mean_uw = (double)power_uw;

	if (!energy->valid)
		return;
	if (energy->started && gap_us > energy->max_gap_us) {
		energy->valid = false;
		(void)snprintf(energy->reason, sizeof(energy->reason),
			       "not read for %.1f s: nobody knows its power in between",
			       (double)gap_us / 1e6);
		return;
	}
	if (energy->mean_us * 5 / 4 < gap_us) /* a reading that comes a little late is whole */
		mean_uw = ((double)energy->last + (double)power_uw) / 2;
	if (energy->started)
		add_sum(energy, sy_meter_to_integer(mean_uw * (double)gap_us / 1e6));
	set_last(energy, now_us, power_uw);
}
