#include "netem/new_document.h"

#include "base/clock.h"
#include "netem/kernel/device.h"
#include "netem/kernel/routes.h"
#include "netem/spec/text.h"
#include "netem/spec/values.h"

#include <string.h>
#include <time.h>

static json_t *networks_json(const struct sy_condition *condition)
{
	json_t *list = json_array();
	char text[SY_UNIT_SIZE];

	for (int i = 0; i < condition->protected_count; i++)
		(void)json_array_append_new(
		    list, json_string(sy_format_network(&condition->protect[i], text)));
	return list;
}

/* The policy's peer tells nothing of a device that does not lead to it. */
static const char *policy_peer(const struct sy_condition *condition)
{
	const char *peer =
	    condition->request->policy ? sy_policy_peer(condition->request->policy) : NULL;
	const char *device = condition->spec->device;

	return peer && (!*device || sy_netem_leads_over(peer, device)) ? peer : NULL;
}

json_t *sy_condition_new_document(const struct sy_condition *condition, struct sy_error *err)
{
	const struct sy_netem_request *request = condition->request;
	const char *peer = request->peer;
	char text[SY_NETEM_SIZE];
	json_t *document;

	if (condition->spec->has_sites) /* each link has its own */
		peer = NULL;
	else if (!peer)
		peer = policy_peer(condition);
	(void)sy_netem_format(request->spec, text);
	document = json_pack(
	    "{s:s, s:o, s:n, s:s, s:s?, s:[], s:o, s:s?, s:{s:n, s:n, s:n, s:n}, s:n, s:n, s:n, "
	    "s:n, s:n, s:f, s:n, s:b, s:n, s:n, s:n, s:{}, s:{s:[], s:n, s:b, s:[]}}",
	    "requested", text, "spec", sy_netem_json(request->spec), "applied", "scope",
	    request->cgroup ? "job" : "node", "scope_by", request->cgroup ? "cgroup-bpf" : NULL,
	    "devices", "protected", networks_json(condition), "peer", peer, "rtt", "before",
	    "during_start", "during_end", "after", "counters", "loss", "apply_s", "verify_s",
	    "undo_s", "start_unix_s", sy_now_s(CLOCK_REALTIME), "end_unix_s", "valid", true,
	    "invalid_reason", "undone", "undone_by", "missing", "undo", "places", "cgroup",
	    "own_cgroup", false, "routes");
	(void)json_object_set_new(document, "node", json_string(request->node));
	(void)json_object_set_new(document, "job_id", json_string(request->job_id));
	(void)json_object_set_new(document, "user_id", json_integer(request->uid));
	(void)json_object_set_new(document, "start_boot_s", json_real(sy_now_s(CLOCK_BOOTTIME)));
	if (request->marks)
		(void)json_object_set(document, "marks", request->marks);
	if (sy_state_own(document, request->watch, err) == 0)
		return document;
	json_decref(document);
	return NULL;
}
