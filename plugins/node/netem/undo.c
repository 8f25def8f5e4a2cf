#include "netem/undo.h"

#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/device.h"
#include "netem/kernel/job_scope.h"
#include "netem/kernel/qdisc_snapshot.h"

#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

json_t *sy_placement_to_json(const struct sy_placement *placement)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:b, s:b, s:b, s:i, s:I, s:I}", "device",
			 placement->device, "index", placement->index, "direction",
			 placement->direction == SY_INGRESS ? "ingress" : "egress", "ifb",
			 placement->ifb, "band", (int)placement->band, "htb", placement->htb, "tbf",
			 placement->tbf, "by_cgroup", placement->by_cgroup, "link",
			 placement->condition, "mtu", (json_int_t)placement->mtu, "limit_packets",
			 (json_int_t)placement->limit_packets);
}

static void copy_name(const json_t *json, const char *key, char *name)
{
	const char *text = json_string_value(json_object_get(json, key));

	(void)snprintf(name, SY_DEVICE_SIZE, "%s", text ? text : "");
}

static json_int_t read_number(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

void sy_placement_from_json(const json_t *json, struct sy_placement *placement)
{
	const char *direction = json_string_value(json_object_get(json, "direction"));

	*placement = (struct sy_placement){
	    .index = (int)read_number(json, "index"),
	    .direction = direction && !strcmp(direction, "ingress") ? SY_INGRESS : SY_EGRESS,
	    .band = (unsigned)read_number(json, "band"),
	    .htb = json_is_true(json_object_get(json, "htb")),
	    .tbf = json_is_true(json_object_get(json, "tbf")),
	    .by_cgroup = json_is_true(json_object_get(json, "by_cgroup")),
	    .condition = (int)read_number(json, "link"),
	    .mtu = read_number(json, "mtu"),
	    .limit_packets = read_number(json, "limit_packets"),
	};
	copy_name(json, "device", placement->device);
	copy_name(json, "ifb", placement->ifb);
}

static json_t *find_placement(const json_t *state, const char *device)
{
	json_t *placements = json_object_get(json_object_get(state, "undo"), "places"), *placement;
	size_t i;

	json_array_foreach(placements, i, placement)
	{
		const char *name = json_string_value(json_object_get(placement, "device"));

		if (name && !strcmp(name, device))
			return placement;
	}
	return NULL;
}

json_t *sy_placement_find_shared(const struct sy_states *states, const char *but,
				 const char *device)
{
	const char *name;
	json_t *state;

	json_object_foreach(states->all, name, state)
	{
		enum sy_owner owner;
		json_t *placement;

		if (but && !strcmp(name, but))
			continue;
		owner = sy_state_find_owner(state);
		placement = find_placement(state, device);
		if (placement && (owner == SY_OWNER_LIVES || owner == SY_OWNER_GONE))
			return placement;
	}
	return NULL;
}

char *sy_tree_read(const char *device, struct sy_error *err)
{
	const char *argv[] = {"tc", "qdisc", "show", "dev", device, NULL};

	return sy_run_text(argv, NULL, err);
}

char *sy_tree_find_own(const char *tree, const struct sy_placement *placement)
{
	char start[40];
	const char *line;

	(void)snprintf(start, sizeof(start), "qdisc %s %x:", placement->tbf ? "tbf" : "netem",
		       SY_CHILD_MAJOR + placement->band);
	line = strstr(tree, start);
	return line ? strndup(line, strcspn(line, "\n")) : strdup("");
}

/* A missing qdisc cannot be deleted: that is no failure, so tc continues (-force). */
static int run_lines(char *lines, struct sy_error *err)
{
	static const char *const argv[] = {"tc", "-force", "-batch", "-", NULL};
	cleanup_output struct sy_output output = {0};
	cleanup_free char *mine = lines;

	if (!mine)
		return sy_fail(err, "out of memory");
	return sy_run(argv, mine, &output, err);
}

static int remove_ifb(const struct sy_placement *placement, struct sy_error *err)
{
	return if_nametoindex(placement->ifb) ? sy_link_remove(placement->ifb, err) : 0;
}

static int undo_ingress(const struct sy_placement *placement, const struct sy_qdiscs *list,
			struct sy_error *err)
{
	/* Nobody else's: apply refuses where there is one already. */
	if (sy_qdisc_by_parent(list, TC_H_INGRESS) && if_nametoindex(placement->ifb) &&
	    run_lines(sy_plan_undo(placement, true), err) < 0)
		return -1;
	return remove_ifb(placement, err);
}

static int undo_egress(const struct sy_placement *placement, const json_t *json,
		       const struct sy_qdiscs *list, bool last, struct sy_error *err)
{
	const json_t *restore = json_object_get(json, "restore");
	enum sy_root root = sy_qdiscs_find_root(list);

	if (root == SY_ROOT_OURS && run_lines(sy_plan_undo(placement, last), err) < 0)
		return -1;
	if (last && (root == SY_ROOT_OURS || root == SY_ROOT_DEFAULT))
		return sy_qdiscs_restore(placement->index, restore, err);
	return 0;
}

/* Whether anything of ours is left at a place. */
static int check_gone(const struct sy_placement *placement, bool last, struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};

	if (sy_qdiscs_read(placement->index, &list, err) < 0)
		return -1;
	if (placement->direction == SY_EGRESS &&
	    (sy_qdisc_by_handle(&list, (SY_CHILD_MAJOR + placement->band) << 16) ||
	     (last && sy_qdiscs_find_root(&list) == SY_ROOT_OURS)))
		return sy_fail(err, "our qdisc on %s is still there: tc qdisc del dev %s root",
			       placement->device, placement->device);
	return 0;
}

/* 1: the tree is the one from before (or others still shape there); 0: it is not; -1. */
static int compare_trees(const struct sy_placement *placement, const json_t *json, bool last,
			 struct sy_error *err)
{
	const char *before = json_string_value(json_object_get(json, "before"));
	cleanup_free char *after = NULL;

	if (!last)
		return 1;
	after = sy_tree_read(placement->device, err);
	return after ? before && !strcmp(before, after) : -1;
}

/* As it was: pieces of many segments, and the offloads that make them. */
static int restore_segments(const struct sy_placement *placement, const json_t *json,
			    struct sy_error *err)
{
	json_int_t segments = json_integer_value(json_object_get(json, "gso_max_segs"));

	if (segments > 0 && sy_gso_segments_set(placement->device, segments, err) < 0)
		return -1;
	return sy_offloads_set(placement->device, json_object_get(json, "offloads"), true, err);
}

static bool is_same_device(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "index"), json_object_get(b, "index"));
}

/* Another condition stays on the device, and may not have needed this: it puts it back, later. */
static int pass_on_offloads(struct sy_states *states, const char *from, const json_t *mine,
			    struct sy_error *err)
{
	json_t *offloads = json_object_get(mine, "offloads");
	json_t *segments = json_object_get(mine, "gso_max_segs"), *state, *placement;
	const char *name;
	size_t i;

	json_object_foreach(states->all, name, state)
	{
		bool changed = false;

		if (!strcmp(name, from))
			continue;
		json_array_foreach(json_object_get(json_object_get(state, "undo"), "places"), i,
				   placement)
		{
			if (!is_same_device(placement, mine))
				continue;
			if (json_array_size(offloads) >
			    json_array_size(json_object_get(placement, "offloads")))
				changed |= !json_object_set(placement, "offloads", offloads);
			/* A place made while they were few has the small number. */
			if (read_number(mine, "gso_max_segs") >
			    read_number(placement, "gso_max_segs"))
				changed |= !json_object_set(placement, "gso_max_segs", segments);
		}
		if (changed && sy_state_save(states, name, state, err) < 0)
			return -1;
	}
	return 0;
}

static int undo_placement(struct sy_states *states, const char *name, const json_t *json,
			  struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	struct sy_placement placement;
	bool last;

	sy_placement_from_json(json, &placement);
	if (!if_indextoname((unsigned)placement.index, placement.device))
		return remove_ifb(&placement, err) < 0 ? -1
						       : 1; /* the device is gone, and all on it */
	last = !sy_placement_find_shared(states, name,
					 json_string_value(json_object_get(json, "device")));
	if (sy_qdiscs_read(placement.index, &list, err) < 0)
		return -1;
	if ((placement.direction == SY_INGRESS
		 ? undo_ingress(&placement, &list, err)
		 : undo_egress(&placement, json, &list, last, err)) < 0)
		return -1;
	if ((last ? restore_segments(&placement, json, err)
		  : pass_on_offloads(states, name, json, err)) < 0)
		return -1;
	if (check_gone(&placement, last, err) < 0)
		return -1;
	/* Both directions of one device have the same tree before: the last of them compares. */
	return compare_trees(&placement, json, last && !json_is_true(json_object_get(json, "more")),
			     err);
}

static int undo_scope(const json_t *undo, struct sy_error *err)
{
	const char *folder = json_string_value(json_object_get(undo, "cgroup"));

	return folder
		   ? sy_scope_detach(folder, json_is_true(json_object_get(undo, "own_cgroup")), err)
		   : 0;
}

/* Of jobs before, in whose folders a process was dying when their own undo gave up waiting. */
static void remove_old_scopes(const struct sy_states *states, const json_t *state)
{
	const json_t *undo = json_object_get(state, "undo");
	const char *node = json_string_value(json_object_get(state, "node"));
	const char *folder = json_string_value(json_object_get(undo, "cgroup"));

	if (node)
		(void)sy_scope_sweep(json_is_true(json_object_get(undo, "own_cgroup")) ? folder
										       : NULL,
				     node, states->all);
}

int sy_undo_tree(struct sy_states *states, const char *name, json_t *state, struct sy_error *err)
{
	const json_t *undo = json_object_get(state, "undo");
	json_t *placement;
	double start = sy_now_s(CLOCK_MONOTONIC);
	bool same;
	size_t i;

	if (sy_state_find_owner(state) == SY_OWNER_AND_KERNEL_GONE)
		return json_object_set_new(state, "undone", json_true());
	if (undo_scope(undo, err) < 0)
		return -1;
	remove_old_scopes(states, state);
	same = sy_routes_restore(json_object_get(undo, "routes"));
	json_array_foreach(json_object_get(undo, "places"), i, placement)
	{
		int result = undo_placement(states, name, placement, err);

		if (result < 0)
			return -1;
		same &= result;
	}
	(void)json_object_set_new(state, "undone", json_boolean(same));
	(void)json_object_set_new(state, "undo_s", json_real(sy_now_s(CLOCK_MONOTONIC) - start));
	return 0;
}

/* By the clock of its beginning, though the wall clock may have been set since. */
static double find_end(const json_t *state)
{
	const json_t *start = json_object_get(state, "start_boot_s");
	double boot_s = sy_now_s(CLOCK_BOOTTIME);

	if (!json_is_number(start) || sy_state_find_owner(state) == SY_OWNER_AND_KERNEL_GONE)
		return sy_now_s(CLOCK_REALTIME);
	return json_number_value(json_object_get(state, "start_unix_s")) + boot_s -
	       json_number_value(start);
}

int sy_undo_state(struct sy_states *states, const char *name, const char *by, struct sy_error *err)
{
	json_t *state = json_incref(json_object_get(states->all, name));
	char done[SY_STATE_NAME_SIZE];
	int result = sy_undo_tree(states, name, state, err);

	if (result < 0) {
		(void)json_object_set_new(state, "invalid_reason", json_string(err->text));
		(void)sy_state_save(states, name, state, NULL);
		json_decref(state);
		return -1;
	}
	(void)json_object_set_new(state, "undone_by", json_string(by));
	(void)json_object_set_new(state, "end_unix_s", json_real(find_end(state)));
	(void)snprintf(done, sizeof(done), "%.*s.done.json", (int)(strlen(name) - 5), name);
	sy_state_remove_private(state);
	result = sy_state_save(states, done, state, err);
	json_decref(state);
	return result < 0 ? -1 : sy_state_remove(states, name, err);
}

void sy_undo_mark_early(json_t *state, const char *by)
{
	(void)json_object_set_new(state, "valid", json_false());
	if (!json_is_string(json_object_get(state, "invalid_reason")))
		(void)json_object_set_new(
		    state, "invalid_reason",
		    json_sprintf("it was undone by %s, not at the job's end: whether it held until "
				 "then is not known",
				 by));
}

/* The process that applied it was killed before it reported that the condition holds. */
static bool was_never_verified(const json_t *state)
{
	return json_is_null(json_object_get(json_object_get(state, "rtt"), "during_start")) &&
	       !json_object_get(json_object_get(state, "missing"), "rtt.during_start");
}

static int undo_early(struct sy_states *states, const char *name, const char *by,
		      struct sy_error *err)
{
	json_t *state = json_object_get(states->all, name);
	bool remove = was_never_verified(state);
	char done[SY_STATE_NAME_SIZE];

	sy_undo_mark_early(state, by);
	if (sy_undo_state(states, name, by, err) < 0)
		return -1;
	(void)snprintf(done, sizeof(done), "%.*s.done.json", (int)(strlen(name) - 5), name);
	return remove ? sy_state_remove(states, done, err) : 0;
}

int sy_undo_stale(struct sy_states *states, const char *by, struct sy_error *err)
{
	const char *name;
	int count = 0;
	bool failed = false;
	json_t *state;
	void *next;

	json_object_foreach_safe(states->all, next, name, state)
	{
		enum sy_owner owner = sy_state_find_owner(state);
		char copy[SY_STATE_NAME_SIZE];

		if (owner == SY_OWNER_LIVES || owner == SY_OWNER_NOT_HERE)
			continue;
		(void)snprintf(copy, sizeof(copy), "%s", name);
		if (!json_is_object(state))
			failed |= sy_state_remove(states, copy, err) < 0;
		else if (undo_early(states, copy, by, err) < 0)
			failed = true;
		else
			count++;
	}
	return failed ? -1 : count;
}
