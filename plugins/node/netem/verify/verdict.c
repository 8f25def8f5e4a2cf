#include "netem/verify/verdict.h"

#include "base/document.h"
#include "netem/spec/loss.h"

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

/* The median of netem's Pareto table (mean 0, iproute2's netem/pareto.c: 4/3 (u^(-1/3) - 3/2)) lies
 * at -0.32 J; that of paretonormal between it and 0. */
#define PARETO_SHIFT 0.32

struct verdict {
	json_t *conditions;
	const struct sy_netem *spec;
};

__attribute__((format(printf, 2, 3))) static void condemn(struct verdict *verdict,
							  const char *format, ...)
{
	char text[512];
	va_list args;

	(void)json_object_set_new(verdict->conditions, "valid", json_false());
	if (json_is_string(json_object_get(verdict->conditions, "invalid_reason")))
		return; /* the first one stands */
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)json_object_set_new(verdict->conditions, "invalid_reason", sy_json_text(text));
}

/* --- round-trip times --- */

/* In seconds; NAN: was not measured. */
static double seconds_of(const json_t *rtt, const char *key)
{
	json_t *value = json_object_get(rtt, key);

	return json_is_number(value) && json_integer_value(json_object_get(rtt, "received")) > 0
		   ? json_number_value(value)
		   : NAN;
}

static json_t *rtt_at(json_t *conditions, const char *moment)
{
	return json_object_get(json_object_get(conditions, "rtt"), moment);
}

/* Whatever holds up packets on a busy node adds to their time, so the fastest echo tells a delay
 * best; but where each waits another time, or some do not wait at all, the median. */
static const char *evidence(const struct sy_netem *spec)
{
	return spec->jitter_us || spec->reorder_ppb ? "median_s" : "min_s";
}

/* How often an echo and its answer pass our qdiscs. Marked answers are not shaped where they are
 * made (plan.c): neither by the peer, nor by this node when they leave by the loopback. */
static int passes(const struct verdict *verdict)
{
	return verdict->spec->direction == SY_BOTH ? 2 : 1;
}

/* docs/netem.md, "What is verified". */
static double tolerance_s(const struct sy_netem *spec, double expected_s, int times, int received)
{
	double tolerance = fmax(LEAST_TOLERANCE_S, RELATIVE * expected_s);
	double jitter_s = (double)spec->jitter_us / 1e6;

	tolerance += MEDIAN_ERROR * jitter_s * sqrt((double)times / received);
	if (spec->distribution == SY_PARETO || spec->distribution == SY_PARETONORMAL)
		tolerance += PARETO_SHIFT * jitter_s * times;
	if (spec->has_rate) /* an echo request on the wire */
		tolerance += times * 98 * 8 / (double)spec->rate_bit_per_s;
	return tolerance;
}

/* Added round-trip time at a moment, in seconds. */
struct added {
	double before, now, added, asked, tolerance;
	int received;
};

/* Of a busy node's `before`, the true median lies between its fastest echo and its median. */
static double nearest(double wanted, double low, double high)
{
	return fmin(fmax(wanted, low), high);
}

/* False: there is nothing to compare. */
static bool compare(const struct verdict *verdict, const char *moment, struct added *delay)
{
	json_t *before = rtt_at(verdict->conditions, "before");
	json_t *during = rtt_at(verdict->conditions, moment);
	const char *key = evidence(verdict->spec);
	double least = seconds_of(before, "min_s"), most = seconds_of(before, key);
	int times = passes(verdict);

	delay->now = seconds_of(during, key);
	delay->received = (int)json_integer_value(json_object_get(during, "received"));
	delay->asked = times * (double)verdict->spec->delay_us / 1e6;
	delay->added = nearest(delay->asked, delay->now - most, delay->now - least);
	delay->before = delay->now - delay->added;
	if (isnan(delay->now) || isnan(least) || isnan(most))
		return false;
	delay->tolerance =
	    tolerance_s(verdict->spec, delay->before + delay->asked, times, delay->received);
	return true;
}

/* What the job has left in the queue of a low rate delays those behind it. */
static bool holds(const struct verdict *verdict, const char *moment, const struct added *delay)
{
	if (delay->added > delay->asked && verdict->spec->has_rate && !strcmp(moment, "during_end"))
		return true;
	return verdict->spec->reorder_ppb >= REORDER_MOST_PPB ||
	       fabs(delay->added - delay->asked) <= delay->tolerance;
}

static const struct sy_netem nothing; /* what is asked for before applying and after undoing */

/* Half of the echoes of a quiet node take hardly longer than the fastest. */
static bool is_steady(json_t *rtt)
{
	double least_s = seconds_of(rtt, "min_s"), median_s = seconds_of(rtt, "median_s");

	return isnan(median_s) || median_s - least_s <= tolerance_s(&nothing, least_s, 1, 1);
}

static void note_busy(struct verdict *verdict, const char *moment, const char *when)
{
	json_t *rtt = rtt_at(verdict->conditions, moment);

	if (!is_steady(rtt))
		sy_json_note(verdict->conditions,
			     "%s the node, its peer or the way was busy: half of the echoes took "
			     "%.2f ms and more, the fastest, which counts, %.2f ms",
			     when, seconds_of(rtt, "median_s") * 1e3,
			     seconds_of(rtt, "min_s") * 1e3);
}

static void judge_delay(struct verdict *verdict, const char *moment, const char *when)
{
	bool least = !strcmp(evidence(verdict->spec), "min_s");
	struct added delay;

	if (least && !(verdict->spec->has_rate && !strcmp(moment, "during_end")))
		note_busy(verdict, moment, when);

	if (!compare(verdict, moment, &delay))
		return;
	if (verdict->spec->reorder_ppb >= REORDER_MOST_PPB)
		sy_json_note(verdict->conditions,
			     "the delay was not judged: with reorder=25%% and more, the median may "
			     "be that of packets sent ahead");
	if (!holds(verdict, moment, &delay))
		condemn(verdict,
			"%s the %s round-trip time was %.2f ms longer than before (%.2f ms "
			"beside %.2f ms, %d answers); asked were %.2f ms, tolerance %.2f ms",
			when, least ? "least" : "median", delay.added * 1e3, delay.now * 1e3,
			delay.before * 1e3, delay.received, delay.asked * 1e3,
			delay.tolerance * 1e3);
}

/* Somebody else's packets, or another way there: tc's tree says that ours are not delayed. */
static void judge_after(struct verdict *verdict)
{
	struct verdict plain = {verdict->conditions, &nothing};
	struct added delay;

	if (!compare(&plain, "after", &delay) || delay.added <= delay.tolerance)
		return;
	sy_json_note(verdict->conditions,
		     "after undoing the least round-trip time was %.2f ms, %.2f ms longer than "
		     "before: the peer or the way to it was slower, or busy",
		     delay.now * 1e3, delay.added * 1e3);
}

void sy_netem_take_rtt(json_t *conditions, const struct sy_netem *spec, const char *moment,
		       json_t *rtt)
{
	const char *key = strcmp(moment, "after") ? evidence(spec) : "min_s";
	json_t *kept = rtt_at(conditions, moment);

	if (json_is_object(kept) && seconds_of(kept, key) <= seconds_of(rtt, key))
		json_decref(rtt);
	else
		(void)json_object_set_new(json_object_get(conditions, "rtt"), moment, rtt);
}

bool sy_netem_rtt_holds(json_t *conditions, const struct sy_netem *spec, const char *moment)
{
	bool after = !strcmp(moment, "after");
	struct verdict verdict = {conditions, after ? &nothing : spec};
	struct added delay;

	if (!strcmp(moment, "before"))
		return is_steady(rtt_at(conditions, moment));
	if (!compare(&verdict, moment, &delay))
		return true;
	return after ? delay.added <= delay.tolerance : holds(&verdict, moment, &delay);
}

/* --- qdiscs --- */

static void judge_device(struct verdict *verdict, const json_t *device)
{
	const char *name = json_string_value(json_object_get(device, "device"));
	const char *began = json_string_value(json_object_get(device, "kernel"));
	json_t *ended = json_object_get(device, "kernel_end");

	if (json_is_null(ended))
		condemn(verdict,
			"the qdisc of %s was gone at the end: someone took it away during the job "
			"(it was: %.200s)",
			name, began ? began : "?");
	else if (ended && began && strcmp(began, json_string_value(ended)) != 0)
		condemn(verdict,
			"the qdisc of %s was changed during the job: it was '%.180s', at the end "
			"'%.180s'",
			name, began, json_string_value(ended));
}

static void set_loss(struct verdict *verdict, int64_t dropped, int64_t packets)
{
	double low, high;

	if (!packets) {
		(void)json_object_set_new(verdict->conditions, "loss", json_null());
		return;
	}
	sy_wilson(dropped, packets, &low, &high);
	(void)json_object_set_new(verdict->conditions, "loss",
				  json_pack("{s:f,s:f,s:f,s:I}", "achieved",
					    (double)dropped / (double)packets, "low", low, "high",
					    high, "packets", (json_int_t)packets));
}

/* What a full link does, or what was asked for. */
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

static void judge_drops(struct verdict *verdict, int64_t dropped, int64_t packets)
{
	const struct sy_netem *spec = verdict->spec;
	struct sy_drops drops = sy_drops_expected(spec, packets);

	if (!drops.judged) {
		sy_json_note(verdict->conditions,
			     "the loss was not judged: too few spells of the Gilbert-Elliott "
			     "model's bad state");
		return;
	}
	if (spec->has_gemodel)
		sy_json_note(verdict->conditions,
			     "the loss is judged by the Gilbert-Elliott model's mean in the long "
			     "run, whose spread is that of the correlated chain");
	if (dropped > drops.high && (spec->has_limit || spec->has_rate)) {
		note_full_queue(verdict, dropped - (int64_t)(drops.loss * (double)packets));
		return;
	}
	if (dropped >= drops.low && dropped <= drops.high)
		return;
	if (drops.loss > 0)
		condemn(verdict,
			"%" PRId64 " of %" PRId64 " packets were lost (%.4g %%), asked were "
			"%.4g %%: chance explains %" PRId64 " to %" PRId64 " (99.9 %%)%s",
			dropped, packets, 100 * (double)dropped / (double)packets, 100 * drops.loss,
			drops.low, drops.high,
			dropped > drops.high ? "; the others did not fit into the queue" : "");
	else
		condemn(
		    verdict,
		    "%" PRId64 " of %" PRId64 " packets were dropped, asked were 0, tolerance "
		    "0: the queue was too short (a limit= or rate= asked for says this is meant)",
		    dropped, packets);
}

void sy_netem_judge(json_t *conditions, const struct sy_netem *spec)
{
	struct verdict verdict = {conditions, spec};
	json_t *counters = json_object_get(conditions, "counters"), *device;
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
	if (json_is_object(counters)) {
		json_int_t sent = json_integer_value(json_object_get(counters, "sent_packets"));
		json_int_t dropped =
		    json_integer_value(json_object_get(counters, "dropped_packets"));

		set_loss(&verdict, dropped, sent + dropped);
		judge_drops(&verdict, dropped, sent + dropped);
	}
	judge_after(&verdict);
}
