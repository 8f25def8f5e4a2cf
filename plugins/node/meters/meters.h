/* The energy of this node: all its meters, which of them make it up, and their sums since the first
 * look.
 *
 * A meter (meter.h) counts joules or reports watts of a part of the node: RAPL's zones, a BMC, the
 * kernel's sensors, GPUs, an administrator's own file. Each kind is a reader (readers.h). They are
 * found once, at the job's start; those that answer at once are read with every sample, those that
 * may take long by a process of their own (slow_readings.h), so that no sample waits for a
 * BMC. readings_to_joules.h turns readings into joules.
 *
 * Meters overlap, and some are the same counter by another way. Those that count are of one kind:
 * where counters of joules exist, one of the whole node, else packages and dram, each once: from
 * powercap where it can be read, else from perf. Else a meter that reports watts. docs/sampler.md
 * has the order.
 *
 * It promises that no joule is counted twice, and that none is made up: wraps are undone, but where
 * an unread wrap, a gap or a failure may have lost some, the meter has no value from then on, and
 * says why. It knows no jobs:
 * what of a node's joules is a job's is for record/ and docs/energy.md to say. */
#ifndef STEELYARD_METERS_METERS_H
#define STEELYARD_METERS_METERS_H

#include "base/samples.h"
#include "meters/meter.h"
#include "meters/readings_to_joules.h"
#include "meters/slow_readings.h"

/* Mark those that count; whether there are any. */
bool sy_meters_choose(struct sy_meter *meter, int count);

struct sy_meters {
	int count;
	struct sy_meter meter[SY_MAX_ZONES];
	struct sy_energy energy[SY_MAX_ZONES];
	char none[160];	      /* why there are none, or none counts */
	bool lacking;	      /* there may be more of them */
	struct sy_slow *slow; /* of those that a process of their own reads; NULL */
	int life_fd;	      /* closed: that process ends */
};

/* Find them below `root`. */
void sy_meters_find(struct sy_meters *meters, int root);

/* Open those that are read with every sample; the others have no value. */
void sy_meters_open(struct sy_meters *meters, int root);

/* Read them at the monotonic time `now_us` into the cells of `line`. */
void sy_meters_read(struct sy_meters *meters, int64_t now_us, struct sy_line *line);

/* True when the node's energy is counted at every sample from packages and dram alone. Then
 * energy above idle is proportional to CPU time, and a part of it can be assigned to a job
 * (docs/energy.md). */
bool sy_meters_follow_cpu(const struct sy_meters *meters);

/* What has been seen of one meter. */
struct sy_meter_status {
	int64_t wraps;	    /* how often it has started again */
	int64_t elapsed_us; /* from its first reading to its last */
	bool power;	    /* its joules are an integral over watts */
};

/* Report the state of each meter; at the end also why it has no value, where `reason` is empty. */
void sy_meters_report(const struct sy_meters *meters, int64_t now_us, bool end,
		      struct sy_meter_status *status, char (*reason)[SY_REASON_SIZE]);

/* The longest time between two samples in which no wrap is missed, µs, with a margin of four and
 * not below 100 ms; 0: any. */
int64_t sy_meters_max_period_us(const struct sy_meters *meters);

/* The process that reads slow meters: it is nobody's child, holds no right, and ends when the
 * sampler does, or when one of its meters has not answered for half a minute. */

/* Start it if there is a slow meter that can be read: it has `root` for theirs. Where it cannot be
 * started they have no value. Call it before a subreaper is set: it must not become a child. */
void sy_slow_start(struct sy_meters *meters, int root);

/* Let it end; the CPU time that it has used, ns. */
int64_t sy_slow_end(struct sy_meters *meters);

#endif
