#include "netem/job_conditions.h"

#include "base/exec.h"
#include "base/file.h"
#include "base/json_document.h"
#include "netem/kernel/device.h"
#include "netem/kernel/qdisc_snapshot.h"
#include "netem/undo.h"
#include "netem/verify/verify.h"

#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>

/* A device that one condition is for, as it is. */
struct spot {
	struct sy_conditions *conditions;
	struct sy_condition *condition;
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
	cleanup_free char *output = sy_run_text(argv, NULL, err);

	if (!output)
		return -1;
	sy_cleanup_qdiscs(&spot->list);
	spot->list = (struct sy_qdiscs){0};
	if (sy_qdiscs_read(spot->device->index, &spot->list, err) < 0)
		return -1;
	spot->root = sy_qdiscs_find_root(&spot->list);
	return 0;
}

static int read_device(struct spot *spot, struct sy_error *err)
{
	if (sy_qdiscs_read(spot->device->index, &spot->list, err) < 0)
		return -1;
	spot->root = sy_qdiscs_find_root(&spot->list);
	spot->shared = sy_placement_find_shared(&spot->conditions->states, spot->conditions->name,
						spot->device->name);
	if (spot->root == SY_ROOT_OURS && !spot->shared && remove_orphan(spot, err) < 0)
		return -1;
	if (spot->root == SY_ROOT_FOREIGN)
		return refuse_foreign(spot, err);
	if (spot->condition->spec->direction != SY_EGRESS &&
	    sy_qdisc_by_parent(&spot->list, TC_H_INGRESS))
		return sy_fail(err,
			       "%s has an ingress or clsact qdisc already, which is not ours: "
			       "incoming packets cannot be shaped here",
			       spot->device->name);
	spot->before = sy_tree_read(spot->device->name, err);
	return spot->before ? 0 : -1;
}

/* Whether a packet could belong to another state, too; what cannot be read could have any. */
static bool has_same_packets(json_t *state, const struct sy_netem *spec)
{
	struct sy_netem other;
	json_t *document;

	for (size_t i = 0; (document = sy_condition_document(state, i)); i++)
		if (sy_condition_read_spec(document, &other) < 0 || sy_plan_overlap(&other, spec))
			return true;
	return false;
}

/* Two conditions on one device must not claim the same packet. */
static int check_state(const struct spot *spot, const char *name, json_t *state, bool *taken,
		       struct sy_error *err)
{
	const char *text = json_string_value(json_object_get(state, "requested"));
	const char *scope = json_string_value(json_object_get(state, "scope"));
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(state, "undo"), "places"), i, item)
	{
		struct sy_placement placement;

		sy_placement_from_json(item, &placement);
		if (strcmp(placement.device, spot->device->name) != 0)
			continue;
		if (placement.band <= SY_LAST_BAND)
			taken[placement.band] = true;
		if (spot->conditions->request->cgroup && scope && !strcmp(scope, "job"))
			continue;
		if (has_same_packets(state, spot->condition->spec))
			return sy_fail(err,
				       "%s is shaped already, by %.*s (%s): two conditions cannot "
				       "have the same packets",
				       spot->device->name, (int)(strlen(name) - 5), name,
				       text ? text : "?");
	}
	return 0;
}

/* The bands that the job's conditions before this one have. */
static void mark_own_bands(const struct spot *spot, bool *taken)
{
	for (const struct sy_condition *one = spot->conditions->item; one < spot->condition; one++)
		for (int i = 0; i < one->placement_count; i++)
			if (!strcmp(one->placement[i].device, spot->device->name))
				taken[one->placement[i].band] = true;
}

static int find_free_band(const struct spot *spot, unsigned *band, struct sy_error *err)
{
	bool taken[SY_LAST_BAND + 1] = {0};
	const char *name;
	json_t *state;

	json_object_foreach(spot->conditions->states.all, name, state)
	{
		if (check_state(spot, name, state, taken, err) < 0)
			return -1;
	}
	mark_own_bands(spot, taken);
	for (*band = SY_FIRST_BAND; *band <= SY_LAST_BAND; ++*band)
		if (!taken[*band])
			return 0;
	return sy_fail(err, "%s has %u conditions already, which is as many as there can be",
		       spot->device->name, SY_LAST_BAND - SY_FIRST_BAND + 1);
}

/* One condition that needs them has them for all: what is switched off is the device's. */
static bool needs_single_packets(const struct sy_conditions *conditions)
{
	bool found = false;

	for (int i = 0; i < conditions->count; i++)
		found |= sy_netem_needs_single_packets(conditions->item[i].spec);
	return found;
}

/* What is handed from the first state on a device to the next, so that the last one undone can put
 * it back. */
static json_t *make_undo(const struct spot *spot, const struct sy_placement *placement)
{
	json_t *json = sy_placement_to_json(placement), *offloads, *segments = NULL;

	if (spot->shared) {
		(void)json_object_set(json, "before", json_object_get(spot->shared, "before"));
		(void)json_object_set(json, "restore", json_object_get(spot->shared, "restore"));
		offloads = json_deep_copy(json_object_get(spot->shared, "offloads"));
		segments = json_incref(json_object_get(spot->shared, "gso_max_segs"));
	} else {
		(void)json_object_set_new(json, "before", json_string(spot->before));
		(void)json_object_set_new(json, "restore", sy_qdiscs_to_json(&spot->list));
		offloads = json_array();
	}
	if (needs_single_packets(spot->conditions)) {
		json_t *on = sy_offloads_read(spot->device->name,
					      spot->condition->spec->direction != SY_EGRESS);

		(void)json_array_extend(offloads, on);
		json_decref(on);
		if (!json_is_integer(segments))
			segments = json_integer(sy_gso_segments_read(spot->device->name));
	}
	(void)json_object_set_new(json, "offloads", offloads);
	(void)json_object_set_new(json, "gso_max_segs", segments ? segments : json_null());
	return json;
}

/* The longest queue that one of the steps needs. */
static int64_t choose_limit(const struct spot *spot)
{
	const struct sy_steps *steps = &spot->condition->steps;
	int64_t window_bytes = sy_tcp_window_read(), most = 0;

	for (int i = 0; i < steps->count; i++) {
		int64_t limit = sy_plan_limit(&steps->step[i].spec, spot->device->mtu,
					      spot->device->speed_bit_per_s, window_bytes);

		most = limit > most ? limit : most;
	}
	return most;
}

static void add_placement(struct spot *spot, unsigned band, enum sy_direction direction)
{
	struct sy_condition *condition = spot->condition;
	struct sy_placement *placement = &condition->placement[condition->placement_count];
	const struct sy_qdisc *root = sy_qdisc_by_parent(&spot->list, TC_H_ROOT);
	json_t *undo = json_object_get(spot->conditions->document, "undo"), *item;

	*placement = (struct sy_placement){
	    .index = spot->device->index,
	    .direction = direction,
	    .band = band,
	    .first = spot->root != SY_ROOT_OURS,
	    .htb = spot->root == SY_ROOT_OURS && !strcmp(root->kind, "htb"),
	    .by_cgroup = spot->conditions->request->cgroup != NULL,
	    .condition = (int)(condition - spot->conditions->item),
	    .mtu = spot->device->mtu,
	    .limit_packets = choose_limit(spot),
	};
	strcpy(placement->device, spot->device->name);
	if (direction == SY_INGRESS)
		(void)snprintf(placement->ifb, sizeof(placement->ifb), "sy-ifb%d",
			       placement->index);
	item = make_undo(spot, placement);
	if (direction == SY_EGRESS && condition->spec->direction == SY_BOTH)
		(void)json_object_set_new(item, "more", json_true());
	if (json_array_append_new(json_object_get(undo, "places"), item) < 0)
		item = NULL; /* no memory: then the state is not written either */
	condition->undo[condition->placement_count++] = item;
}

static int check_device(const struct spot *spot, struct sy_error *err)
{
	const struct sy_policy *policy = spot->conditions->request->policy;
	const char *name = spot->device->name;

	if (policy && sy_policy_allows_device(policy, name, err) < 0)
		return -1;
	if (!spot->device->rdma)
		return 0;
	sy_json_note(spot->conditions->document,
		     "%s has RDMA beside its Ethernet: TCP/IP was shaped, RDMA verbs (as MPI uses "
		     "them) were not",
		     name);
	return policy ? sy_policy_allows_rdma(policy, name, err) : 0;
}

static int attach_to_device(struct spot *spot, struct sy_error *err)
{
	unsigned band;

	if (check_device(spot, err) < 0 || read_device(spot, err) < 0 ||
	    find_free_band(spot, &band, err) < 0)
		return -1;
	if (spot->condition->spec->direction != SY_INGRESS)
		add_placement(spot, band, SY_EGRESS);
	if (spot->condition->spec->direction != SY_EGRESS)
		add_placement(spot, band, SY_INGRESS);
	return 0;
}

static int attach_condition(struct sy_conditions *conditions, struct sy_condition *condition,
			    struct sy_error *err)
{
	struct sy_netem_device devices[SY_NETEM_TARGETS];
	int count = sy_netem_find_devices(condition->spec, devices, SY_NETEM_TARGETS, err);

	for (int i = 0; i < count; i++) {
		struct spot spot = {conditions, condition, &devices[i], .before = NULL};
		int result = attach_to_device(&spot, err);

		sy_cleanup_qdiscs(&spot.list);
		free(spot.before);
		if (result < 0)
			return -1;
	}
	if (count > 0)
		sy_netem_note_other_routes(condition->document, condition->spec, devices, count);
	return count < 0 ? -1 : 0;
}

int sy_conditions_place(struct sy_conditions *conditions, struct sy_error *err)
{
	for (int i = 0; i < conditions->count; i++)
		if (attach_condition(conditions, &conditions->item[i], err) < 0)
			return -1;
	return 0;
}
