#include "netem/placement.h"

#include "base/document.h"
#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/link.h"
#include "netem/kernel/offload.h"
#include "netem/kernel/qdisc.h"
#include "netem/sites_document.h"
#include "netem/undo.h"
#include "netem/verify/verdict.h"

#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>

struct spot {
	const struct sy_netem_device *device;
	struct sy_qdiscs list;
	enum sy_root root;
	json_t *shared; /* another state's place on it */
	char *before;
};

static int refuse_foreign(const struct spot *spot, struct sy_error *err)
{
	const struct sy_qdisc *root = sy_qdisc_by_parent(&spot->list, TC_H_ROOT);

	return sy_fail(
	    err,
	    "%s is shaped by somebody else: its root qdisc is %s %x:, which is not ours. "
	    "Remove it (tc qdisc del dev %s root) or name another device",
	    spot->device->name, root ? root->kind : "?", root ? TC_H_MAJ(root->handle) >> 16 : 0,
	    spot->device->name);
}

/* A root of ours without a state: its folder was lost. */
static int remove_orphan(struct spot *spot, struct sy_error *err)
{
	const char *argv[] = {"tc", "qdisc", "del", "dev", spot->device->name, "root", NULL};
	cleanup_free char *said = sy_run_text(argv, NULL, err);

	if (!said)
		return -1;
	sy_cleanup_qdiscs(&spot->list);
	spot->list = (struct sy_qdiscs){0};
	if (sy_qdiscs_read(spot->device->index, &spot->list, err) < 0)
		return -1;
	spot->root = sy_root_of(&spot->list);
	return 0;
}

static int look(const struct sy_condition *condition, struct spot *spot, struct sy_error *err)
{
	if (sy_qdiscs_read(spot->device->index, &spot->list, err) < 0)
		return -1;
	spot->root = sy_root_of(&spot->list);
	spot->shared = sy_place_shared(&condition->states, condition->name, spot->device->name);
	if (spot->root == SY_ROOT_OURS && !spot->shared && remove_orphan(spot, err) < 0)
		return -1;
	if (spot->root == SY_ROOT_FOREIGN)
		return refuse_foreign(spot, err);
	if (sy_condition_spec(condition)->direction != SY_EGRESS &&
	    sy_qdisc_by_parent(&spot->list, TC_H_INGRESS))
		return sy_fail(err,
			       "%s has an ingress or clsact qdisc already, which is not ours: "
			       "incoming packets cannot be shaped here",
			       spot->device->name);
	spot->before = sy_tree_text(spot->device->name, err);
	return spot->before ? 0 : -1;
}

/* Whether a packet could belong to another state, too; what cannot be read could have any. */
static bool meets(const json_t *state, const struct sy_netem *spec)
{
	struct sy_netem other;
	int found;

	for (size_t i = 0; (found = sy_sites_spec_of(state, i, &other)); i++)
		if (found < 0 || sy_plan_overlap(&other, spec))
			return true;
	return false;
}

/* Two conditions on one device must not claim the same packet. */
static int check_others(const struct sy_condition *condition, const char *device, bool *taken,
			struct sy_error *err)
{
	const char *name;
	json_t *state;

	json_object_foreach(condition->states.all, name, state)
	{
		const char *text = json_string_value(json_object_get(state, "requested"));
		const char *scope = json_string_value(json_object_get(state, "scope"));
		json_t *place;
		size_t i;

		json_array_foreach(json_object_get(json_object_get(state, "undo"), "places"), i,
				   place)
		{
			struct sy_place there;

			sy_place_read(place, &there);
			if (strcmp(there.device, device))
				continue;
			if (there.band <= SY_LAST_BAND)
				taken[there.band] = true;
			if (condition->request->cgroup && scope && !strcmp(scope, "job"))
				continue;
			if (meets(state, sy_condition_spec(condition)))
				return sy_fail(err,
					       "%s is shaped already, by %.*s (%s): two "
					       "conditions cannot have the same packets",
					       device, (int)(strlen(name) - 5), name,
					       text ? text : "?");
		}
	}
	return 0;
}

static int free_band(const struct sy_condition *condition, const char *device, unsigned *band,
		     struct sy_error *err)
{
	bool taken[SY_LAST_BAND + 1] = {0};

	if (check_others(condition, device, taken, err) < 0)
		return -1;
	for (int i = 0; i < condition->count; i++) /* of other links */
		if (!strcmp(condition->place[i].device, device))
			taken[condition->place[i].band] = true;
	for (*band = SY_FIRST_BAND; *band <= SY_LAST_BAND; ++*band)
		if (!taken[*band])
			return 0;
	return sy_fail(err, "%s has %u conditions already, which is as many as there can be",
		       device, SY_LAST_BAND - SY_FIRST_BAND + 1);
}

/* Of sites one link that needs it has it for all: what is switched off is the device's. */
static bool needs_single_packets(const struct sy_condition *condition)
{
	bool found = sy_netem_needs_single_packets(condition->spec);

	for (int i = 0; condition->sites && i < condition->sites->count; i++)
		found |= sy_netem_needs_single_packets(&condition->sites->link[i].spec);
	return found;
}

/* What is handed from the first state on a device to the next, so that the last one undone can put
 * it back. */
static json_t *keep(const struct sy_condition *condition, const struct spot *spot,
		    const struct sy_place *place)
{
	json_t *json = sy_place_json(place), *offloads, *segments = NULL;

	if (spot->shared) {
		(void)json_object_set(json, "before", json_object_get(spot->shared, "before"));
		(void)json_object_set(json, "restore", json_object_get(spot->shared, "restore"));
		offloads = json_deep_copy(json_object_get(spot->shared, "offloads"));
		segments = json_incref(json_object_get(spot->shared, "gso_max_segs"));
	} else {
		(void)json_object_set_new(json, "before", json_string(spot->before));
		(void)json_object_set_new(json, "restore", sy_qdiscs_keep(&spot->list));
		offloads = json_array();
	}
	if (needs_single_packets(condition)) {
		json_t *on = sy_offloads_on(spot->device->name,
					    sy_condition_spec(condition)->direction != SY_EGRESS);

		(void)json_array_extend(offloads, on);
		json_decref(on);
		if (!json_is_integer(segments))
			segments = json_integer(sy_gso_segments(spot->device->name));
	}
	(void)json_object_set_new(json, "offloads", offloads);
	(void)json_object_set_new(json, "gso_max_segs", segments ? segments : json_null());
	return json;
}

/* Of a trace the longest queue that one of its steps needs. */
static int64_t limit_of(const struct sy_condition *condition, const struct sy_netem_device *device)
{
	int64_t window_bytes = sy_tcp_window_bytes();
	int64_t most = sy_plan_limit(sy_condition_spec(condition), device->mtu,
				     device->speed_bit_per_s, window_bytes);

	for (int i = 0; condition->trace && i < condition->trace->count; i++) {
		int64_t limit = sy_plan_limit(&condition->trace->step[i].spec, device->mtu,
					      device->speed_bit_per_s, window_bytes);

		most = limit > most ? limit : most;
	}
	return most;
}

static void add_place(struct sy_condition *condition, const struct spot *spot, unsigned band,
		      enum sy_direction direction)
{
	struct sy_place *place = &condition->place[condition->count++];
	const struct sy_qdisc *root = sy_qdisc_by_parent(&spot->list, TC_H_ROOT);
	json_t *places = json_object_get(json_object_get(condition->document, "undo"), "places");
	json_t *json;

	*place = (struct sy_place){
	    .index = spot->device->index,
	    .direction = direction,
	    .band = band,
	    .first = spot->root != SY_ROOT_OURS,
	    .htb = spot->root == SY_ROOT_OURS && !strcmp(root->kind, "htb"),
	    .by_cgroup = condition->request->cgroup != NULL,
	    .link = condition->link,
	    .mtu = spot->device->mtu,
	    .limit_packets = limit_of(condition, spot->device),
	};
	strcpy(place->device, spot->device->name);
	if (direction == SY_INGRESS)
		(void)snprintf(place->ifb, sizeof(place->ifb), "sy-ifb%d", place->index);
	json = keep(condition, spot, place);
	if (direction == SY_EGRESS && sy_condition_spec(condition)->direction == SY_BOTH)
		(void)json_object_set_new(json, "more", json_true());
	(void)json_array_append_new(places, json);
}

static int check_device(struct sy_condition *condition, const struct sy_netem_device *device,
			struct sy_error *err)
{
	const struct sy_policy *policy = condition->request->policy;

	if (policy && sy_policy_allows_device(policy, device->name, err) < 0)
		return -1;
	if (!device->rdma)
		return 0;
	sy_json_note(condition->document,
		     "%s has RDMA beside its Ethernet: TCP/IP was shaped, RDMA verbs (as MPI uses "
		     "them) were not",
		     device->name);
	return policy ? sy_policy_allows_rdma(policy, device->name, err) : 0;
}

static int place_on(struct sy_condition *condition, const struct sy_netem_device *device,
		    struct sy_error *err)
{
	struct spot spot = {.device = device};
	unsigned band;
	int result = -1;

	if (check_device(condition, device, err) < 0)
		return -1;
	if (condition->count + 2 > SY_PLACES_MAX)
		return sy_fail(err, "expected at most %d queues for one job", SY_PLACES_MAX);
	if (look(condition, &spot, err) == 0 &&
	    free_band(condition, device->name, &band, err) == 0) {
		if (sy_condition_spec(condition)->direction != SY_INGRESS)
			add_place(condition, &spot, band, SY_EGRESS);
		if (sy_condition_spec(condition)->direction != SY_EGRESS)
			add_place(condition, &spot, band, SY_INGRESS);
		result = 0;
	}
	sy_cleanup_qdiscs(&spot.list);
	free(spot.before);
	return result;
}

static int place_link(struct sy_condition *condition, struct sy_error *err)
{
	struct sy_netem_device devices[SY_NETEM_TARGETS];
	const struct sy_netem *spec = sy_condition_spec(condition);
	int count = sy_netem_devices(spec, devices, SY_NETEM_TARGETS, err);

	for (int i = 0; i < count; i++)
		if (place_on(condition, &devices[i], err) < 0)
			return -1;
	if (count > 0)
		sy_netem_note_others(sy_condition_document(condition), spec, devices, count);
	return count < 0 ? -1 : 0;
}

int sy_condition_place(struct sy_condition *condition, struct sy_error *err)
{
	int links = condition->sites ? condition->sites->count : 1;

	for (condition->link = 0; condition->link < links; condition->link++)
		if (place_link(condition, err) < 0)
			return -1;
	condition->link = 0;
	return 0;
}
