#include "netem/netem.h"

#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/json_document.h"
#include "netem/job_conditions.h"
#include "netem/kernel/device.h"
#include "netem/kernel/qdisc_snapshot.h"
#include "netem/state.h"
#include "netem/undo.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The next job may begin as soon as the caller has given up waiting for us (20 s): by then all must
 * be undone. So nothing is measured later than this after the begin. */
#define DURING_US 10000000
#define AFTER_US  15000000

/* Where steps were followed the queue is not as it was at the start, but as the last one requests.
 */
static void accept_last_step(json_t *entry, const struct sy_placement *placement,
			     const char *device, const json_t *document)
{
	struct sy_netem spec;

	if (json_is_object(json_object_get(document, "trace")) &&
	    sy_condition_read_spec(document, &spec) == 0 &&
	    sy_qdisc_has_spec((int)if_nametoindex(device), (SY_CHILD_MAJOR + placement->band) << 16,
			      &spec))
		(void)json_object_set(entry, "kernel", json_object_get(entry, "kernel_end"));
}

/* The qdisc's counters, for its condition and for the job, and tc's report of it. */
static void read_placement(json_t *state, size_t number, const json_t *json)
{
	json_t *entry = json_array_get(json_object_get(state, "devices"), number), *document;
	struct sy_qdisc_counters counters;
	cleanup_free char *tree = NULL, *line = NULL;
	struct sy_placement placement;
	const char *device;

	sy_placement_from_json(json, &placement);
	document = sy_condition_document(state, (size_t)placement.condition);
	device = placement.direction == SY_INGRESS ? placement.ifb : placement.device;
	if (sy_qdisc_read(device, (SY_CHILD_MAJOR + placement.band) << 16, &counters, NULL) == 0) {
		sy_netem_add_counters(state, &counters);
		if (document && document != state)
			sy_netem_add_counters(document, &counters);
	}
	tree = sy_tree_read(device, NULL);
	line = tree ? sy_tree_find_own(tree, &placement) : NULL;
	(void)json_object_set_new(entry, "kernel_end",
				  line && *line ? json_string(line) : json_null());
	accept_last_step(entry, &placement, device, document);
}

static void read_placements(json_t *state)
{
	json_t *placement;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(state, "undo"), "places"), i, placement)
	    read_placement(state, i, placement);
}

/* What measuring writes. */
static void copy_measured(json_t *to, const json_t *from)
{
	static const char *const keys[] = {"rtt", "missing", "verify_s", "notes"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		json_t *value = json_object_get(from, keys[i]);

		if (value)
			(void)json_object_set(to, keys[i], value);
	}
}

static void copy_all_measured(json_t *to, json_t *from)
{
	json_t *document;

	copy_measured(to, from);
	for (size_t i = 0; (document = sy_condition_document(to, i)); i++)
		copy_measured(document, sy_condition_document(from, i));
}

/* Measured without the lock: an echo may take minutes, and other jobs start meanwhile. Until then
 * the state is ours; when this process is killed, any process may undo it. 1: another process has
 * undone it. */
static int measure_during(const char *run_dir, struct sy_states *states, const char *name,
			  int64_t begun_us, struct sy_error *err)
{
	json_t *state = json_object_get(states->all, name), *copy;
	int result;

	/* A full disk must not keep it in force; nor that it stays its owner's. */
	if (sy_state_set_owner(state, getpid(), NULL) == 0)
		(void)sy_state_save(states, name, state, NULL);
	copy = json_deep_copy(state);
	sy_states_close(states);
	sy_conditions_measure(copy, "during_end", begun_us + DURING_US);
	result = sy_states_open(run_dir, false, states, err);
	state = json_object_get(states->all, name);
	if (json_is_object(state))
		copy_all_measured(state, copy);
	json_decref(copy);
	if (result || !json_is_object(state))
		return result ? result : 1;
	read_placements(state);
	return 0;
}

static int undo_and_judge(struct sy_states *states, const char *name, const char *by, bool measured,
			  int64_t begun_us, struct sy_error *err)
{
	json_t *state = json_incref(json_object_get(states->all, name));
	char done[SY_STATE_NAME_SIZE];
	int result = sy_undo_state(states, name, by, err);

	if (result == 0 && measured) {
		sy_conditions_measure(state, "after", begun_us + AFTER_US);
		sy_conditions_judge(state);
		(void)snprintf(done, sizeof(done), "%.*s.done.json", (int)(strlen(name) - 5), name);
		result = sy_state_save(states, done, state, err);
	}
	json_decref(state);
	return result;
}

/* By hand, while the job continues. A condition that was applied by hand watches no process. */
static void mark_early(json_t *state, const char *by)
{
	if (!strcmp(by, "hand") && json_integer_value(json_object_get(state, "watch_pid")) > 0)
		sy_undo_mark_early(state, by);
}

/* 1: there is nothing (any more); 0: to be undone; -1. */
static int check_state(struct sy_states *states, const char *name, struct sy_error *err)
{
	json_t *state = json_object_get(states->all, name);

	if (!state)
		return 1;
	if (!json_is_object(state))
		return sy_state_remove(states, name, err) < 0 ? -1 : 1;
	if (sy_state_find_owner(state) == SY_OWNER_NOT_HERE)
		return sy_fail(err, "%.*s has its condition in another network namespace",
			       (int)(strlen(name) - 5), name);
	return 0;
}

/* Whether there is anything to measure: the document can be read, and its kernel is this one. */
static bool can_measure(json_t *state)
{
	const char *text = json_string_value(json_object_get(state, "requested"));
	struct sy_netem spec;

	return text && sy_netem_parse(text, &spec, NULL) == 0 &&
	       sy_state_find_owner(state) != SY_OWNER_AND_KERNEL_GONE;
}

int sy_netem_finish(const char *run_dir, const char *node, const char *job_id, const char *by,
		    struct sy_error *err)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	char name[SY_STATE_NAME_SIZE];
	int64_t begun_us = sy_now_us(CLOCK_MONOTONIC);
	json_t *state;
	int result;
	bool measures;

	if (sy_state_make_name(name, node, job_id, false, err) < 0)
		return -1;
	result = sy_states_open(run_dir, false, &states, err);
	if (!result)
		result = check_state(&states, name, err);
	if (result)
		return result;
	state = json_object_get(states.all, name);
	measures = can_measure(state);
	mark_early(state, by);
	if (measures) {
		sy_conditions_end_steps(state, sy_now_s(CLOCK_BOOTTIME));
		result = measure_during(run_dir, &states, name, begun_us, err);
	}
	if (result)
		return result;
	return undo_and_judge(&states, name, by, measures, begun_us, err);
}

json_t *sy_netem_consume_document(const char *run_dir, const char *node, const char *job_id)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	cleanup_close int fd = -1;
	char name[SY_STATE_NAME_SIZE];
	json_t *document;

	if (sy_state_make_name(name, node, job_id, true, NULL) < 0 ||
	    sy_states_open(run_dir, false, &states, NULL))
		return NULL;
	fd = openat(states.dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	document = sy_json_read_fd(fd);
	if (document)
		(void)sy_state_remove(&states, name, NULL);
	return document;
}

int sy_netem_undo_stale(const char *run_dir, const char *by, struct sy_error *err)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	int result;

	if (!sy_netem_has_states(run_dir))
		return 0;
	result = sy_states_open(run_dir, false, &states, err);
	return result ? (result < 0 ? -1 : 0) : sy_undo_stale(&states, by, err);
}

/* Roots of ours that no state knows, found by their handle. */
static int clear_device(const char *device, struct sy_error *err)
{
	cleanup_free char *tree = sy_tree_read(device, err);
	const char *argv[] = {"tc", "qdisc", "del", "dev", device, "root", NULL};
	cleanup_free char *output = NULL;

	if (!tree)
		return -1;
	if (!strstr(tree, " 57e1: root"))
		return 0;
	output = sy_run_text(argv, NULL, err);
	return output ? 1 : -1;
}

static int clear_ifb(const char *device, struct sy_error *err)
{
	char shaped[IF_NAMESIZE];
	const char *const ingress[] = {"tc", "qdisc", "del", "dev", shaped, "ingress", NULL};
	cleanup_free char *output = NULL;
	unsigned index;

	if (sscanf(device, "sy-ifb%u", &index) != 1)
		return 0;
	if (if_indextoname(index, shaped))
		output = sy_run_text(ingress, NULL, NULL);
	return sy_link_remove(device, err) < 0 ? -1 : 1;
}

static int clear_unknown(struct sy_error *err)
{
	struct if_nameindex *list = if_nameindex();
	int count = 0;

	for (struct if_nameindex *one = list; one && one->if_index && count >= 0; one++) {
		int ifb = clear_ifb(one->if_name, err);
		int root = ifb ? 0 : clear_device(one->if_name, err);

		count = ifb < 0 || root < 0 ? -1 : count + ifb + root;
	}
	if_freenameindex(list);
	return count;
}

int sy_netem_clear_all(const char *run_dir, struct sy_error *err)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	int count = 0, rest;
	const char *name;
	json_t *state;
	void *next;

	if (sy_states_open(run_dir, true, &states, err) < 0)
		return -1;
	json_object_foreach_safe(states.all, next, name, state)
	{
		char copy[SY_STATE_NAME_SIZE];

		(void)snprintf(copy, sizeof(copy), "%s", name);
		if (json_is_object(state) && sy_state_find_owner(state) == SY_OWNER_NOT_HERE)
			continue;
		mark_early(state, "hand");
		if ((json_is_object(state) ? sy_undo_state(&states, copy, "hand", err)
					   : sy_state_remove(&states, copy, err)) < 0)
			return -1;
		count++;
	}
	rest = clear_unknown(err);
	return rest < 0 ? -1 : count + rest;
}
