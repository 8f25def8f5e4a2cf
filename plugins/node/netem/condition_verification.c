/* Every condition of a job is measured, and judged by its document; the job's document has their
 * sums. */
#include "netem/job_conditions.h"

#include "base/clock.h"
#include "netem/spec/spec.h"
#include "netem/verify/verify.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST_US	 8000000 /* of echoes at one moment: a job waits for them */
#define EACH_HAS "each link has its own, under sites.links"

/* On a shared node the packets of the job carry the class of their condition. */
static uint32_t find_priority(const json_t *state, size_t number, const char *moment)
{
	json_t *undo = json_object_get(state, "undo"), *placement;
	size_t i;

	if (strncmp(moment, "during", 6) != 0 || !json_is_string(json_object_get(undo, "cgroup")))
		return 0;
	json_array_foreach(json_object_get(undo, "places"), i, placement)
	{
		if (json_integer_value(json_object_get(placement, "link")) == (json_int_t)number)
			return SY_ROOT_MAJOR << 16 |
			       (uint32_t)json_integer_value(json_object_get(placement, "band"));
	}
	return 0;
}

static void skip_moment(json_t *document, const char *moment, const char *reason)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "rtt.%s", moment);
	(void)json_object_set_new(json_object_get(document, "missing"), path, json_string(reason));
}

static void measure_condition(json_t *document, const char *moment, uint32_t priority,
			      int64_t until_us)
{
	const char *reason =
	    json_string_value(json_object_get(json_object_get(document, "missing"), "rtt.before"));
	struct sy_netem spec;
	struct sy_measure how = {.peer = json_string_value(json_object_get(document, "peer")),
				 .spec = &spec,
				 .count = SY_MEASURE_COUNT,
				 .priority = priority,
				 .until_us = until_us};

	if (sy_condition_read_spec(document, &spec) < 0)
		return;
	if (reason && strcmp(moment, "before") != 0) {
		skip_moment(document, moment, reason);
		return;
	}
	if (!strcmp(moment, "after")) { /* under the lock: no longer than nothing delays */
		spec.delay_us = spec.jitter_us = 0;
		spec.has_rate = false;
	}
	sy_netem_measure_into(document, moment, &how);
}

/* A list of one has nothing to add up. */
static void add_totals(json_t *state, const char *moment, double spent_s)
{
	if (sy_condition_document(state, 0) == state)
		return;
	(void)json_object_set_new(state, "verify_s", json_real(spent_s));
	skip_moment(state, moment, EACH_HAS);
}

void sy_conditions_measure(json_t *state, const char *moment, int64_t until_us)
{
	int64_t start_us = sy_now_us(CLOCK_MONOTONIC);
	json_t *document;
	double spent_s = 0;

	for (size_t i = 0; (document = sy_condition_document(state, i)); i++) {
		if (sy_now_us(CLOCK_MONOTONIC) - start_us > MOST_US)
			skip_moment(document, moment,
				    "the links before it took 8 s and more: a job waits");
		else
			measure_condition(document, moment, find_priority(state, i, moment),
					  until_us);
		spent_s += json_number_value(json_object_get(document, "verify_s"));
	}
	add_totals(state, moment, spent_s);
}

/* A condition's document has its devices while it is judged; the job's keeps them. */
static void lend_devices(const json_t *state, size_t number, json_t *document)
{
	json_t *own = json_array(), *device;
	size_t i;

	json_array_foreach(json_object_get(state, "devices"), i, device)
	{
		if (json_integer_value(json_object_get(device, "link")) == (json_int_t)number)
			(void)json_array_append(own, device);
	}
	(void)json_object_set_new(document, "devices", own);
}

static void invalidate(json_t *state, const json_t *document)
{
	const char *to = json_string_value(json_object_get(document, "to_site"));
	const char *reason = json_string_value(json_object_get(document, "invalid_reason"));

	(void)json_object_set_new(state, "valid", json_false());
	if (!json_is_string(json_object_get(state, "invalid_reason")))
		(void)json_object_set_new(
		    state, "invalid_reason",
		    json_sprintf("to site %s: %s", to ? to : "?", reason ? reason : "?"));
}

static void judge_one_of_list(json_t *state, size_t number, json_t *document)
{
	struct sy_netem spec;

	if (sy_condition_read_spec(document, &spec) < 0)
		return;
	lend_devices(state, number, document);
	sy_netem_judge(document, &spec);
	(void)json_object_del(document, "devices");
	if (json_is_false(json_object_get(document, "valid")))
		invalidate(state, document);
}

void sy_conditions_judge(json_t *state)
{
	json_t *document = sy_condition_document(state, 0);
	struct sy_netem spec;

	if (document == state) {
		if (sy_condition_read_spec(state, &spec) == 0)
			sy_netem_judge(state, &spec);
		return;
	}
	if (!json_is_string(json_object_get(state, "invalid_reason")))
		(void)json_object_set_new(state, "valid", json_true());
	for (size_t i = 0; (document = sy_condition_document(state, i)); i++)
		judge_one_of_list(state, i, document);
	(void)json_object_set_new(json_object_get(state, "missing"), "loss", json_string(EACH_HAS));
}
