/* What one meter has counted since it was first read, its wraps undone or its watts summed up; a
 * wrap or a stretch of time that may have been missed makes it invalid for good.
 *
 * A counter starts again at 0 after max_energy_range_uj: after 3.9 minutes for 65.5 kJ at 280 W.
 * Between two readings further apart than a node at full power needs for one range, nobody knows
 * how often that happened: then there is no value, rather than a wrong one. */
#ifndef STEELYARD_METERS_ENERGY_H
#define STEELYARD_METERS_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

/* The most that one zone can draw: above any socket sold (500 W). */
#define SY_ENERGY_MAX_WATTS 500

struct sy_energy {
	int64_t range_uj; /* 0: not known; then a counter that goes down is invalid */
	int64_t last_uj, last_us;
	int64_t sum_uj;
	int64_t wraps;
	bool started, valid;
	char why[96]; /* why it is not valid */
};

void sy_energy_init(struct sy_energy *energy, int64_t range_uj);

/* Add a reading at the monotonic time `now_us`. */
void sy_energy_add(struct sy_energy *energy, int64_t now_us, int64_t counter_uj);

/* The zone could not be read: it has no value from here on. */
void sy_energy_fail(struct sy_energy *energy, const char *why);

/* The longest time between two readings in which no wrap can be missed, µs; 0: any. */
int64_t sy_energy_max_gap_us(int64_t range_uj);

#endif
