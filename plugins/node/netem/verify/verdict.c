#include "netem/verify/verify.h"

#include "base/json_document.h"
#include "netem/spec/compound_values.h"
#include "netem/spec/loss_statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEAST_TOLERANCE_S 1e-3
#define RELATIVE	  0.1
#define REORDER_MOST_PPB  (SY_WHOLE_PPB / 4) /* beyond, the median may be that of undelayed ones */

/* Of netem's four distributions with jitter J the normal one has the widest error of the median,
 * sqrt(π/2) J/√n (uniform: J/√n); 3.29 of it cover 99.9 %. */
#define MEDIAN_ERROR (3.29 * 1.2533)

/* The median of netem's Pareto table (mean 0, iproute2's netem/pareto.c: 4/3 (u^(-1/3) - 3/2)) is
 * -0.32 J; that of paretonormal is between it and 0. */
#define PARETO_SHIFT 0.32

struct verdict {
	json_t *conditions;
	const struct sy_netem *spec;
};

__attribute__((format(printf, 2, 3))) static void invalidate(struct verdict *verdict,
							     const char *format, ...)
{
	char text[512];
	va_list args;

	(void)json_object_set_new(verdict->conditions, "valid", json_false());
	if (json_is_string(json_object_get(verdict->conditions, "invalid_reason")))
		return; /* the first reason stays */
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)json_object_set_new(verdict->conditions, "invalid_reason", sy_json_text(text));
}

/* --- round-trip times --- */

/* In seconds; NAN: was not measured. */
static double read_seconds(const json_t *rtt, const char *key)
{
	json_t *value = json_object_get(rtt, key);

	return json_is_number(value) && json_integer_value(json_object_get(rtt, "received")) > 0
		   ? json_number_value(value)
		   : NAN;
}

static json_t *find_rtt(json_t *conditions, const char *moment)
{
	return json_object_get(json_object_get(conditions, "rtt"), moment);
}

/* Whatever holds up packets on a busy node adds to their time, so the fastest echo shows a delay
 * best; but where each waits another time, or some do not wait at all, the median. */
static const char *choose_statistic(const struct sy_netem *spec)
{
	return spec->jitter_us || spec->reorder_ppb ? "median_s" : "min_s";
}

/* How often an echo and its answer pass our qdiscs. Marked answers are not shaped where they are
 * made (tc_batch.c): neither by the peer, nor by this node when they leave by the loopback. */
static int count_passes(const struct verdict *verdict)
{
	return verdict->spec->direction == SY_BOTH ? 2 : 1;
}

/* docs/netem.md, "What is verified". */
static double tolerance_s(const struct sy_netem *spec, double expected_s, int times, int received)
{
	double tolerance = fmax(LEAST_TOLERANCE_S, RELATIVE * expected_s);
	double jitter_s = (double)spec->jitter_us / 1e6;

	if (spec->distribution != SY_TABLE) /* else the table's own quantiles */
		tolerance += MEDIAN_ERROR * jitter_s * sqrt((double)times / received);
	if (spec->distribution == SY_PARETO || spec->distribution == SY_PARETONORMAL)
		tolerance += PARETO_SHIFT * jitter_s * times;
	if (spec->has_rate) /* an echo request on the wire */
		tolerance +=
		    (double)(times * 8 * sy_bytes_on_link(&spec->overhead, SY_ECHO_BYTES)) /
		    (double)spec->rate_bit_per_s;
	return tolerance;
}

/* Added round-trip time at a moment, in seconds. `slot`: as much more may have been added, where an
 * echo waits for a slot or a delay table has the median lie in a range. */
struct added {
	double before, now, added, requested, slot, tolerance;
	int received;
};

/* Where the median of the answers may lie by the delay table's own quantiles; of fewer answers than
 * these stand for, anywhere in it. Only its sum over the ways is known. */
static void add_table(const struct verdict *verdict, struct added *delay, int times)
{
	json_t *table = json_object_get(verdict->conditions, "delay_table");
	double jitter_s = times * (double)verdict->spec->jitter_us / 1e6;
	bool few = delay->received < SY_MEASURE_COUNT;
	double low, high;

	if (!json_is_object(table) || verdict->spec->distribution != SY_TABLE)
		return;
	low = json_number_value(json_object_get(table, few ? "least" : "low"));
	high = json_number_value(json_object_get(table, few ? "most" : "high"));
	delay->requested += jitter_s * low;
	delay->slot += jitter_s * (high - low);
}

/* On a busy node the true median of `before` is between its fastest echo and its median. */
static double clamp_to(double value, double low, double high)
{
	return fmin(fmax(value, low), high);
}

/* False: there is nothing to compare. */
static bool compare_delay(const struct verdict *verdict, const char *moment, struct added *delay)
{
	json_t *before = find_rtt(verdict->conditions, "before");
	json_t *during = find_rtt(verdict->conditions, moment);
	const char *key = choose_statistic(verdict->spec);
	double least = read_seconds(before, "min_s"), most = read_seconds(before, key);
	int times = count_passes(verdict);

	delay->now = read_seconds(during, key);
	delay->received = (int)json_integer_value(json_object_get(during, "received"));
	delay->requested = times * (double)verdict->spec->delay_us / 1e6;
	delay->slot = times * (double)verdict->spec->slot.max_us / 1e6;
	add_table(verdict, delay, times);
	delay->added =
	    clamp_to(delay->requested + delay->slot / 2, delay->now - most, delay->now - least);
	delay->before = delay->now - delay->added;
	if (isnan(delay->now) || isnan(least) || isnan(most))
		return false;
	delay->tolerance =
	    tolerance_s(verdict->spec, delay->before + delay->requested, times, delay->received);
	return true;
}

/* What the job has left in the queue of a low rate delays those behind it. */
static bool is_delay_tolerated(const struct verdict *verdict, const char *moment,
			       const struct added *delay)
{
	bool queues = verdict->spec->has_rate || verdict->spec->has_slot;

	if (delay->added > delay->requested && queues && !strcmp(moment, "during_end"))
		return true;
	return verdict->spec->reorder_ppb >= REORDER_MOST_PPB ||
	       (delay->added >= delay->requested - delay->tolerance &&
		delay->added <= delay->requested + delay->slot + delay->tolerance);
}

static const struct sy_netem nothing; /* the request before applying and after undoing */

/* Half of the echoes of a quiet node take hardly longer than the fastest. */
static bool is_steady(json_t *rtt)
{
	double least_s = read_seconds(rtt, "min_s"), median_s = read_seconds(rtt, "median_s");

	return isnan(median_s) || median_s - least_s <= tolerance_s(&nothing, least_s, 1, 1);
}

static void note_busy(struct verdict *verdict, const char *moment, const char *when)
{
	json_t *rtt = find_rtt(verdict->conditions, moment);

	if (!is_steady(rtt))
		sy_json_note(verdict->conditions,
			     "%s the node, its peer or the way was busy: half of the echoes took "
			     "%.2f ms and more, the fastest, which counts, %.2f ms",
			     when, read_seconds(rtt, "median_s") * 1e3,
			     read_seconds(rtt, "min_s") * 1e3);
}

/* The request at a moment: for a trace the step that was applied, in `room`. */
static const struct sy_netem *find_spec(const struct verdict *verdict, const char *moment,
					struct sy_netem *room)
{
	json_t *trace = json_object_get(verdict->conditions, "trace");
	const char *key = strcmp(moment, "during_start") ? "now" : "first";
	const char *text = json_string_value(json_object_get(trace, key));

	return text && sy_netem_parse(text, room, NULL) == 0 ? room : verdict->spec;
}

static void judge_delay(struct verdict *overall, const char *moment, const char *when)
{
	struct sy_netem room;
	struct verdict at = {overall->conditions, find_spec(overall, moment, &room)},
		       *verdict = &at;
	bool least = !strcmp(choose_statistic(verdict->spec), "min_s");
	struct added delay;

	if (least && !(verdict->spec->has_rate && !strcmp(moment, "during_end")))
		note_busy(verdict, moment, when);

	if (!compare_delay(verdict, moment, &delay))
		return;
	if (verdict->spec->reorder_ppb >= REORDER_MOST_PPB)
		sy_json_note(verdict->conditions,
			     "the delay was not judged: with reorder=25%% and more, the median may "
			     "be that of packets sent ahead");
	if (!is_delay_tolerated(verdict, moment, &delay))
		invalidate(verdict,
			   "%s the %s round-trip time was %.2f ms longer than before (%.2f ms "
			   "beside %.2f ms, %d answers); asked were %.2f ms%s, tolerance %.2f ms",
			   when, least ? "least" : "median", delay.added * 1e3, delay.now * 1e3,
			   delay.before * 1e3, delay.received, delay.requested * 1e3,
			   verdict->spec->has_slot ? " and the time to the next slot"
			   : verdict->spec->distribution == SY_TABLE
			       ? " and more, by the delay table"
			       : "",
			   delay.tolerance * 1e3);
}

/* Somebody else's packets, or another way there: tc's tree shows that ours are not delayed. */
static void judge_after(struct verdict *verdict)
{
	struct verdict plain = {verdict->conditions, &nothing};
	struct added delay;

	if (!compare_delay(&plain, "after", &delay) || delay.added <= delay.tolerance)
		return;
	sy_json_note(verdict->conditions,
		     "after undoing the least round-trip time was %.2f ms, %.2f ms longer than "
		     "before: the peer or the way to it was slower, or busy",
		     delay.now * 1e3, delay.added * 1e3);
}

void sy_netem_keep_fastest(json_t *conditions, const struct sy_netem *spec, const char *moment,
			   json_t *rtt)
{
	const char *key = strcmp(moment, "after") ? choose_statistic(spec) : "min_s";
	json_t *fastest = find_rtt(conditions, moment);

	if (json_is_object(fastest) && read_seconds(fastest, key) <= read_seconds(rtt, key))
		json_decref(rtt);
	else
		(void)json_object_set_new(json_object_get(conditions, "rtt"), moment, rtt);
}

bool sy_netem_is_rtt_tolerated(json_t *conditions, const struct sy_netem *spec, const char *moment)
{
	bool after = !strcmp(moment, "after");
	struct verdict verdict = {conditions, after ? &nothing : spec};
	struct added delay;

	if (!strcmp(moment, "before"))
		return is_steady(find_rtt(conditions, moment));
	if (!compare_delay(&verdict, moment, &delay))
		return true;
	return after ? delay.added <= delay.tolerance
		     : is_delay_tolerated(&verdict, moment, &delay);
}

/* --- qdiscs --- */

static void judge_device(struct verdict *verdict, const json_t *device)
{
	const char *name = json_string_value(json_object_get(device, "device"));
	const char *began = json_string_value(json_object_get(device, "kernel"));
	json_t *ended = json_object_get(device, "kernel_end");

	if (json_is_null(ended))
		invalidate(
		    verdict,
		    "the qdisc of %s was gone at the end: someone took it away during the job "
		    "(it was: %.200s)",
		    name, began ? began : "?");
	else if (ended && began && strcmp(began, json_string_value(ended)) != 0)
		invalidate(
		    verdict,
		    "the qdisc of %s was changed during the job: it was '%.180s', at the end "
		    "'%.180s'",
		    name, began, json_string_value(ended));
}

/* The effect of a full link, or of the request. */
static void note_full_queue(struct verdict *verdict, int64_t times)
{
	json_t *device = json_array_get(json_object_get(verdict->conditions, "devices"), 0);
	json_int_t limit = json_integer_value(json_object_get(device, "limit_packets"));

	sy_json_note(
	    verdict->conditions,
	    "the queue of %" JSON_INTEGER_FORMAT " packets was full %s%" PRId64 " times, %s", limit,
	    verdict->spec->has_loss || verdict->spec->has_gemodel ? "about " : "", times,
	    verdict->spec->has_limit ? "as limit= asked"
				     : "as a link of that rate does; limit= changes it");
}

/* As the kernel counted them. */
static struct sy_counted count_losses(const struct verdict *verdict)
{
	return sy_netem_count_hits(json_object_get(verdict->conditions, "counters"), verdict->spec);
}

static void note_model(const struct verdict *verdict)
{
	if (verdict->spec->has_gemodel || verdict->spec->has_state)
		sy_json_note(verdict->conditions,
			     "the loss is judged by the %s model's mean in the long run, whose "
			     "spread is that of the correlated chain",
			     verdict->spec->has_state ? "four-state" : "Gilbert-Elliott");
}

/* Of a trace each packet met one of its losses. */
static struct sy_drops expect_drops(const struct verdict *verdict, const struct sy_counted *count)
{
	json_t *trace = json_object_get(verdict->conditions, "trace");

	if (!json_is_object(trace))
		return sy_drops_expected(verdict->spec, count->least, count->packets);
	return sy_hits_between(json_number_value(json_object_get(trace, "least_loss")),
			       json_number_value(json_object_get(trace, "most_loss")), count->least,
			       count->packets);
}

static void judge_drops(struct verdict *verdict, const struct sy_counted *count)
{
	const struct sy_netem *spec = verdict->spec;
	struct sy_drops drops = expect_drops(verdict, count);

	if (!drops.judged) {
		sy_json_note(verdict->conditions,
			     "the loss was not judged: too few spells of the %s",
			     spec->has_state ? "four-state model's bursts"
					     : "Gilbert-Elliott model's bad state");
		return;
	}
	note_model(verdict);
	if (count->hits > drops.high && (spec->has_limit || spec->has_rate)) {
		note_full_queue(verdict,
				count->hits - (int64_t)(drops.loss * (double)count->packets));
		return;
	}
	if (count->hits >= drops.low && count->hits <= drops.high)
		return;
	if (drops.loss > 0)
		invalidate(verdict,
			   "%" PRId64 " of %" PRId64 " packets were lost%s (%.4g %%), asked were "
			   "%.4g %%: chance explains %" PRId64 " to %" PRId64 " (99.9 %%)%s",
			   count->hits, count->packets, spec->has_ecn ? " or marked" : "",
			   100 * (double)count->hits / (double)count->packets, 100 * drops.loss,
			   drops.low, drops.high,
			   count->hits > drops.high ? "; the others did not fit into the queue"
						    : "");
	else
		invalidate(verdict,
			   "%" PRId64 " of %" PRId64
			   " packets were dropped, asked were 0, tolerance "
			   "0: the queue was too short (a limit= or rate= asked for says this is "
			   "meant)",
			   count->hits, count->packets);
}

static void judge_chances(struct verdict *verdict)
{
	char reason[256];

	if (sy_netem_judge_chances(verdict->conditions, verdict->spec, reason, sizeof(reason)) < 0)
		invalidate(verdict, "%s", reason);
}

void sy_netem_judge(json_t *conditions, const struct sy_netem *spec)
{
	struct verdict verdict = {conditions, spec};
	json_t *device;
	size_t i;

	if (!json_is_string(json_object_get(conditions, "invalid_reason"))) {
		(void)json_object_set_new(conditions, "valid", json_true());
		(void)json_object_set_new(conditions, "invalid_reason", json_null());
	}
	json_array_foreach(json_object_get(conditions, "devices"), i, device)
	{
		judge_device(&verdict, device);
	}
	note_busy(&verdict, "before", "before");
	judge_delay(&verdict, "during_start", "at the start");
	judge_delay(&verdict, "during_end", "at the end");
	if (json_is_object(json_object_get(conditions, "counters"))) {
		struct sy_counted count = count_losses(&verdict);

		sy_netem_record_loss(conditions, &count);
		judge_drops(&verdict, &count);
		judge_chances(&verdict);
	}
	judge_after(&verdict);
}
