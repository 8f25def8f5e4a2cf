#include "netem/condition.h"

#include "base/clock.h"
#include "base/json_document.h"
#include "netem/kernel/delay_tables.h"
#include "netem/kernel/device.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"
#include "netem/verify/verify.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MOST_US	 8000000 /* of echoes at one moment: a job waits for them */
#define EACH_HAS "each link has its own, under sites.links"

/* --- made --- */

static bool is_protected(const struct sy_conditions *conditions, const struct sy_network *address)
{
	for (int i = 0; i < conditions->protected_count; i++)
		if (sy_network_contains(&conditions->protect[i], address))
			return true;
	return false;
}

/* Whether packets to an address meet the condition. */
static bool is_shaped(const struct sy_conditions *conditions, const struct sy_netem *spec,
		      const char *peer)
{
	struct sy_network address;

	if (!peer || sy_parse_network(peer, &address, NULL) < 0 ||
	    is_protected(conditions, &address))
		return false;
	for (int i = 0; i < spec->to_count; i++)
		if (sy_network_contains(&spec->to[i], &address))
			return true;
	return false;
}

/* The policy's peer, where packets to it leave by the condition's device. */
static const char *policy_peer(const struct sy_conditions *conditions, const struct sy_netem *spec)
{
	const struct sy_policy *policy = conditions->request->policy;
	const char *peer = policy ? sy_policy_peer(policy) : NULL;

	return peer && (!*spec->device || sy_netem_is_routed_over(peer, spec->device)) ? peer
										       : NULL;
}

/* Of one condition the first peer of the request, else the policy's. */
static const char *choose_peer(const struct sy_conditions *conditions)
{
	const struct sy_netem_request *request = conditions->request;

	return request->peer_count ? request->peers[0] : policy_peer(conditions, request->spec);
}

/* Of a link the first peer of the request that is at its other end, else the policy's, else the
 * first host there. */
static const char *choose_peer_of_link(const struct sy_conditions *conditions,
				       const struct sy_netem *spec, char text[SY_UNIT_SIZE])
{
	const struct sy_netem_request *request = conditions->request;
	const char *known = policy_peer(conditions, spec);

	for (int i = 0; i < request->peer_count; i++)
		if (is_shaped(conditions, spec, request->peers[i]))
			return request->peers[i];
	if (is_shaped(conditions, spec, known))
		return known;
	for (int i = 0; i < spec->to_count; i++) {
		bool one = spec->to[i].prefix == (spec->to[i].family == AF_INET ? 32 : 128);

		if (one && is_shaped(conditions, spec, sy_format_network(&spec->to[i], text)))
			return text;
	}
	return NULL;
}

/* What each condition has; the job's document has it as well. */
static json_t *new_document(const struct sy_netem *requested, const char *peer)
{
	char text[SY_NETEM_SIZE];

	(void)sy_netem_format(requested, text);
	return json_pack("{s:s, s:o, s:n, s:s?, s:{s:n, s:n, s:n, s:n}, s:n, s:n, s:n, s:b, s:n, "
			 "s:n, s:{}}",
			 "requested", text, "spec", sy_netem_json(requested), "applied", "peer",
			 peer, "rtt", "before", "during_start", "during_end", "after", "counters",
			 "loss", "verify_s", "valid", true, "invalid_reason", "delay_table",
			 "missing");
}

static json_t *networks_json(const struct sy_conditions *conditions)
{
	json_t *list = json_array();
	char text[SY_UNIT_SIZE];

	for (int i = 0; i < conditions->protected_count; i++)
		(void)json_array_append_new(
		    list, json_string(sy_format_network(&conditions->protect[i], text)));
	return list;
}

/* What the job has once, and its owner. */
static int add_job(const struct sy_conditions *conditions, json_t *document, struct sy_error *err)
{
	const struct sy_netem_request *request = conditions->request;
	json_t *fields = json_pack(
	    "{s:s, s:s?, s:[], s:o, s:n, s:n, s:f, s:n, s:n, s:n, s:{s:[], s:n, s:b, s:[]}}",
	    "scope", request->cgroup ? "job" : "node", "scope_by",
	    request->cgroup ? "cgroup-bpf" : NULL, "devices", "protected",
	    networks_json(conditions), "apply_s", "undo_s", "start_unix_s",
	    sy_now_s(CLOCK_REALTIME), "end_unix_s", "undone", "undone_by", "undo", "places",
	    "cgroup", "own_cgroup", false, "routes");

	(void)json_object_update(document, fields);
	json_decref(fields);
	(void)json_object_set_new(document, "node", json_string(request->node));
	(void)json_object_set_new(document, "job_id", json_string(request->job_id));
	(void)json_object_set_new(document, "user_id", json_integer(request->uid));
	(void)json_object_set_new(document, "start_boot_s", json_real(sy_now_s(CLOCK_BOOTTIME)));
	if (request->marks)
		(void)json_object_set(document, "marks", request->marks);
	return sy_state_set_owner(document, request->watch, err);
}

static int add_details(struct sy_condition *condition, struct sy_error *err)
{
	json_t *table = sy_delay_table_read(SY_TABLES, condition->spec, SY_MEASURE_COUNT, err);

	if (!table)
		return -1;
	(void)json_object_set_new(condition->document, "delay_table", table);
	if (condition->requested.has_trace)
		(void)json_object_set_new(
		    condition->document, "trace",
		    sy_steps_document(&condition->requested, &condition->steps));
	return 0;
}

/* The documents of links, each in the job's. */
static void add_links(struct sy_conditions *conditions)
{
	json_t *links = json_array();

	for (int i = 0; i < conditions->count; i++) {
		struct sy_condition *condition = &conditions->item[i];
		char peer[SY_UNIT_SIZE];

		condition->document =
		    new_document(&condition->requested,
				 choose_peer_of_link(conditions, &condition->requested, peer));
		(void)json_object_set_new(condition->document, "to_site",
					  json_string(condition->to_site));
		if (json_array_append_new(links, condition->document) < 0)
			condition->document = NULL; /* no memory: the state is not written */
	}
	(void)json_object_set_new(
	    conditions->document, "sites",
	    json_pack("{s:s, s:s, s:s, s:o}", "name", conditions->request->spec->sites, "sha256",
		      conditions->sha256, "here", conditions->own_site, "links", links));
}

int sy_conditions_make_document(struct sy_conditions *conditions, struct sy_error *err)
{
	const struct sy_netem *requested = conditions->request->spec;
	bool one = !*conditions->own_site;

	conditions->document = new_document(requested, one ? choose_peer(conditions) : NULL);
	if (one)
		conditions->item[0].document = conditions->document;
	else
		add_links(conditions);
	for (int i = 0; i < conditions->count; i++)
		if (add_details(&conditions->item[i], err) < 0)
			return -1;
	return add_job(conditions, conditions->document, err);
}

/* --- read --- */

json_t *sy_condition_document(json_t *state, size_t number)
{
	json_t *sites = json_object_get(state, "sites");

	if (json_is_object(sites))
		return json_array_get(json_object_get(sites, "links"), number);
	return number ? NULL : state;
}

int sy_condition_read_spec(const json_t *document, struct sy_netem *spec)
{
	const json_t *trace = json_object_get(document, "trace");
	const char *text = json_string_value(json_object_get(trace, "now"));

	if (!text)
		text = json_string_value(json_object_get(trace, "first"));
	if (!text)
		text = json_string_value(json_object_get(document, "requested"));
	return text ? sy_netem_parse(text, spec, NULL) : -1;
}

/* --- measured --- */

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

/* --- judged --- */

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
