/* Documents of conditions as they are judged, for the tests of the verdict. */
#ifndef STEELYARD_TESTS_NETEM_DOCUMENTS_H
#define STEELYARD_TESTS_NETEM_DOCUMENTS_H

#include "tap.h"

#include "netem/verify/verify.h"

static inline json_t *spread(double least_ms, double median_ms)
{
	return json_pack("{s:i,s:f,s:f,s:i}", "received", 25, "min_s", least_ms / 1e3, "median_s",
			 median_ms / 1e3, "sent", 25);
}

static inline json_t *rtt(double ms)
{
	return spread(ms, ms);
}

/* A document with round-trip times in ms (before, during, after; negative: not measured) and what
 * the qdiscs counted. */
static inline json_t *document(double before, double during, double after, int64_t sent,
			       int64_t dropped)
{
	static const char *const moments[] = {"before", "during_start", "during_end", "after"};
	const double ms[] = {before, during, during, after};
	json_t *rtts = json_object();

	for (int i = 0; i < 4; i++)
		(void)json_object_set_new(rtts, moments[i], ms[i] < 0 ? json_null() : rtt(ms[i]));
	return json_pack("{s:o,s:{s:I,s:I},s:[{s:s,s:s,s:s}],s:b}", "rtt", rtts, "counters",
			 "sent_packets", (json_int_t)sent, "dropped_packets", (json_int_t)dropped,
			 "devices", "device", "eth0", "kernel", "qdisc netem 5802: delay 50ms",
			 "kernel_end", "qdisc netem 5802: delay 50ms", "undone", 1);
}

static inline bool judge(json_t *conditions, const char *text, const char *reason)
{
	struct sy_netem spec;
	struct sy_error err;
	const char *found;
	bool valid;

	if (!ok(sy_netem_parse(text, &spec, &err) == 0, "%s is a specification", text))
		return false;
	sy_netem_judge(conditions, &spec);
	valid = json_is_true(json_object_get(conditions, "valid"));
	found = json_string_value(json_object_get(conditions, "invalid_reason"));
	if (!reason)
		return ok(valid && !found, "%s: valid%s%s", text, found ? ", not: " : "",
			  found ? found : "");
	return ok(!valid && found && strstr(found, reason), "%s: invalid, %s: %s", text, reason,
		  found ? found : "no reason");
}

static inline void judge_new(json_t *conditions, const char *text, const char *reason)
{
	(void)judge(conditions, text, reason);
	json_decref(conditions);
}

#endif
