/* What one meter has counted since it was first read, its wraps undone or its watts summed up; a
 * wrap or a stretch of time that may have been missed makes it invalid for good.
 *
 * A counter starts again at 0 after max_energy_range_uj: after 3.9 minutes for 65.5 kJ at 280 W.
 * Between two readings further apart than a node at full power needs for one range, nobody knows
 * how often that happened: then there is no value, rather than a wrong one. Nor is there one if a
 * counter went down where a wrap would mean ten times a zone's power: it was reset. */
#ifndef STEELYARD_METERS_READINGS_TO_JOULES_H
#define STEELYARD_METERS_READINGS_TO_JOULES_H

#include <stdbool.h>
#include <stdint.h>

/* The most that one zone can draw: above any socket sold (500 W). */
#define SY_ENERGY_MAX_WATTS 500

/* Ten times what one zone can draw: a counter that goes down and would have drawn more was reset.
 * Of the 262 kJ of a zone that is read each second, resets in the last 10 kJ (4 %) still look like
 * wraps. A counter of a whole node that wraps at more than 10 kW, read each second, has no value
 * from then on. */
#define SY_ENERGY_MAX_WRAP_WATTS 5000

#define SY_REASON_SIZE 96

struct sy_energy {
	int64_t range_uj;   /* 0: not known; then a counter that goes down is invalid */
	int64_t max_gap_us; /* of power; between two readings */
	int64_t mean_us;    /* of power: see sy_energy_init_power */
	int64_t first_us, last_us;
	int64_t changed_us; /* when the counter was last seen with a new value */
	int64_t last;	    /* µJ, or µW */
	int64_t sum_uj;
	int64_t wraps;
	bool started, valid;
	bool power;		     /* the sum is an integral over watts */
	char reason[SY_REASON_SIZE]; /* why it is not valid */
};

void sy_energy_init(struct sy_energy *energy, int64_t range_uj);

/* Of watts, read every `period_us`; each is the mean of the `mean_us` before it, 0: of that moment.
 */
void sy_energy_init_power(struct sy_energy *energy, int64_t period_us, int64_t mean_us);

/* Add a reading of power: where it is the mean of all the time since the last one, for that time;
 * else as if it had changed evenly. */
void sy_energy_add_power(struct sy_energy *energy, int64_t now_us, int64_t power_uw);

/* Add a reading at the monotonic time `now_us`. */
void sy_energy_add(struct sy_energy *energy, int64_t now_us, int64_t counter_uj);

/* The zone could not be read: it has no value from here on. */
void sy_energy_invalidate(struct sy_energy *energy, const char *reason);

/* The longest time between two readings in which no wrap can be missed, µs; 0: any. */
int64_t sy_energy_max_gap_us(int64_t range_uj);

#endif
