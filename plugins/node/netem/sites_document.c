#include "netem/sites_document.h"

#include "base/clock.h"
#include "base/document.h"
#include "netem/kernel/delay_table.h"
#include "netem/spec/text.h"
#include "netem/spec/values.h"
#include "netem/verify/measure.h"
#include "netem/verify/verdict.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MOST_US	 8000000 /* of echoes at one moment: a job waits for them */
#define EACH_HAS "each link has its own, under sites.links"

/* --- made --- */

static bool is_protected(const struct sy_condition *condition, const struct sy_network *address)
{
	for (int i = 0; i < condition->protected_count; i++)
		if (sy_network_contains(&condition->protect[i], address))
			return true;
	return false;
}

static bool serves(const struct sy_condition *condition, const struct sy_netem *spec,
		   const char *peer)
{
	struct sy_network address;

	if (!peer || sy_parse_network(peer, &address, NULL) < 0 ||
	    is_protected(condition, &address))
		return false;
	for (int i = 0; i < spec->to_count; i++)
		if (sy_network_contains(&spec->to[i], &address))
			return true;
	return false;
}

/* Another node of the job there, else the policy's peer, else the first address that is one. */
static const char *peer_of(const struct sy_condition *condition, const struct sy_netem *spec,
			   char text[SY_UNIT_SIZE])
{
	const struct sy_netem_request *request = condition->request;
	const char *known = request->policy ? sy_policy_peer(request->policy) : NULL;

	for (int i = 0; i < request->peer_count; i++)
		if (serves(condition, spec, request->peers[i]))
			return request->peers[i];
	if (serves(condition, spec, known))
		return known;
	for (int i = 0; i < spec->to_count; i++) {
		bool one = spec->to[i].prefix == (int)(spec->to[i].family == AF_INET ? 32 : 128);

		if (one && serves(condition, spec, sy_format_network(&spec->to[i], text)))
			return text;
	}
	return NULL;
}

static json_t *link_document(const struct sy_condition *condition, const struct sy_sites_link *link,
			     struct sy_error *err)
{
	char text[SY_NETEM_SIZE], peer[SY_UNIT_SIZE];
	json_t *table = sy_delay_table_read(SY_DELAY_TABLES, &link->spec, SY_MEASURE_COUNT, err);

	if (!table)
		return NULL;
	(void)sy_netem_format(&link->spec, text);
	return json_pack("{s:s, s:s, s:o, s:n, s:s?, s:{s:n, s:n, s:n, s:n}, s:n, s:n, s:n, s:b, "
			 "s:n, s:o, s:{}}",
			 "to_site", link->to, "requested", text, "spec", sy_netem_json(&link->spec),
			 "applied", "peer", peer_of(condition, &link->spec, peer), "rtt", "before",
			 "during_start", "during_end", "after", "counters", "loss", "verify_s",
			 "valid", true, "invalid_reason", "delay_table", table, "missing");
}

json_t *sy_sites_document(const struct sy_condition *condition, const struct sy_sites *sites,
			  struct sy_error *err)
{
	json_t *links = json_array();

	for (int i = 0; i < sites->count; i++) {
		json_t *link = link_document(condition, &sites->link[i], err);

		if (link && json_array_append_new(links, link) == 0)
			continue;
		json_decref(links);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "name", condition->spec->sites, "sha256",
			 sites->sha256, "here", sites->here, "links", links);
}

const struct sy_netem *sy_condition_spec(const struct sy_condition *condition)
{
	return condition->sites ? &condition->sites->link[condition->link].spec : condition->spec;
}

json_t *sy_condition_document(const struct sy_condition *condition)
{
	return condition->sites ? sy_sites_link(condition->document, (size_t)condition->link)
				: condition->document;
}

/* --- read --- */

json_t *sy_sites_link(const json_t *state, size_t number)
{
	return json_array_get(json_object_get(json_object_get(state, "sites"), "links"), number);
}

int sy_sites_spec_of(const json_t *state, size_t number, struct sy_netem *spec)
{
	bool sites = json_is_object(json_object_get(state, "sites"));
	const json_t *one = sites ? sy_sites_link(state, number) : number ? NULL : state;
	const char *text = json_string_value(json_object_get(one, "requested"));

	if (!one)
		return sites || number ? 0 : -1;
	return text && sy_netem_parse(text, spec, NULL) == 0 ? 1 : -1;
}

/* --- measured --- */

/* Of one job alone its packets carry the class of the link. */
static uint32_t priority_of(const json_t *state, size_t number, const char *moment)
{
	json_t *undo = json_object_get(state, "undo"), *place;
	size_t i;

	if (strncmp(moment, "during", 6) != 0 || !json_is_string(json_object_get(undo, "cgroup")))
		return 0;
	json_array_foreach(json_object_get(undo, "places"), i, place)
	{
		if (json_integer_value(json_object_get(place, "link")) == (json_int_t)number)
			return SY_ROOT_MAJOR << 16 |
			       (uint32_t)json_integer_value(json_object_get(place, "band"));
	}
	return 0;
}

static void skip(json_t *link, const char *moment, const char *why)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "rtt.%s", moment);
	(void)json_object_set_new(json_object_get(link, "missing"), path, json_string(why));
}

static void measure_link(json_t *link, struct sy_netem *spec, const char *moment, uint32_t priority,
			 int64_t until_us)
{
	struct sy_measure how = {.peer = json_string_value(json_object_get(link, "peer")),
				 .spec = spec,
				 .count = SY_MEASURE_COUNT,
				 .priority = priority,
				 .until_us = until_us};
	const char *why =
	    json_string_value(json_object_get(json_object_get(link, "missing"), "rtt.before"));

	if (why && strcmp(moment, "before") != 0) {
		skip(link, moment, why);
		return;
	}
	if (!strcmp(moment, "after")) { /* under the lock: no longer than nothing delays */
		spec->delay_us = spec->jitter_us = 0;
		spec->has_rate = false;
	}
	sy_netem_measure_into(link, moment, &how);
}

void sy_sites_measure(json_t *state, const char *moment, int64_t until_us)
{
	int64_t start_us = sy_now_us(CLOCK_MONOTONIC);
	struct sy_netem spec;
	double spent_s = 0;

	for (size_t i = 0; sy_sites_link(state, i); i++) {
		json_t *link = sy_sites_link(state, i);

		if (sy_sites_spec_of(state, i, &spec) < 0)
			continue;
		if (sy_now_us(CLOCK_MONOTONIC) - start_us > MOST_US)
			skip(link, moment, "the links before it took 8 s and more: a job waits");
		else
			measure_link(link, &spec, moment, priority_of(state, i, moment), until_us);
		spent_s += json_number_value(json_object_get(link, "verify_s"));
	}
	(void)json_object_set_new(state, "verify_s", json_real(spent_s));
	skip(state, moment, EACH_HAS);
}

/* --- judged --- */

/* As a condition's document has them; the whole's are each told of once. */
static void lend_devices(const json_t *state, size_t number, json_t *link)
{
	json_t *mine = json_array(), *device;
	size_t i;

	json_array_foreach(json_object_get(state, "devices"), i, device)
	{
		if (json_integer_value(json_object_get(device, "link")) == (json_int_t)number)
			(void)json_array_append(mine, device);
	}
	(void)json_object_set_new(link, "devices", mine);
}

static void condemn(json_t *state, const json_t *link)
{
	const char *to = json_string_value(json_object_get(link, "to_site"));
	const char *why = json_string_value(json_object_get(link, "invalid_reason"));

	(void)json_object_set_new(state, "valid", json_false());
	if (!json_is_string(json_object_get(state, "invalid_reason")))
		(void)json_object_set_new(
		    state, "invalid_reason",
		    json_sprintf("to site %s: %s", to ? to : "?", why ? why : "?"));
}

void sy_sites_judge(json_t *state)
{
	struct sy_netem spec;

	if (!json_is_string(json_object_get(state, "invalid_reason")))
		(void)json_object_set_new(state, "valid", json_true());
	for (size_t i = 0; sy_sites_link(state, i); i++) {
		json_t *link = sy_sites_link(state, i);

		if (sy_sites_spec_of(state, i, &spec) < 0)
			continue;
		lend_devices(state, i, link);
		sy_netem_judge(link, &spec);
		(void)json_object_del(link, "devices");
		if (json_is_false(json_object_get(link, "valid")))
			condemn(state, link);
	}
	(void)json_object_set_new(json_object_get(state, "missing"), "loss", json_string(EACH_HAS));
}
