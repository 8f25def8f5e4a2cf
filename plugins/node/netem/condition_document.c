#include "netem/job_conditions.h"

#include "base/clock.h"
#include "netem/kernel/delay_tables.h"
#include "netem/kernel/device.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"
#include "netem/verify/verify.h"

#include <sys/socket.h>
#include <time.h>

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
