#include "netem/netem.h"

#include "base/clock.h"
#include "base/file.h"
#include "netem/job_conditions.h"
#include "netem/kernel/device.h"
#include "netem/kernel/job_scope.h"
#include "netem/spec/spec.h"
#include "netem/undo.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void collect_protected(struct sy_conditions *conditions)
{
	const struct sy_netem_request *request = conditions->request;

	for (int i = 0; i < request->protected_count; i++)
		conditions->protect[conditions->protected_count++] = request->protect[i];
	if (request->policy)
		conditions->protected_count += sy_policy_protected(
		    request->policy, conditions->protect + conditions->protected_count,
		    SY_PROTECTED_MAX);
}

static int check_request(const struct sy_conditions *conditions, struct sy_error *err)
{
	const struct sy_netem *spec = conditions->request->spec;

	if (geteuid() != 0)
		return sy_fail(err, "only root can put network conditions in place");
	if (spec->none)
		return sy_fail(err, "none asks for nothing: there is nothing to apply");
	if (conditions->request->cgroup && spec->direction != SY_EGRESS)
		return sy_fail(err, "direction: the incoming packets of one job cannot be "
				    "separated from those of others; request the node "
				    "exclusively, or egress");
	if (conditions->request->cgroup && spec->has_rto_min)
		return sy_fail(err, "rto_min: it is set in the node's routes, which jobs share; "
				    "request the node exclusively");
	return 0;
}

static json_t *get_undo(struct sy_conditions *conditions)
{
	return json_object_get(conditions->document, "undo");
}

static int prepare_scope(struct sy_conditions *conditions, struct sy_error *err)
{
	char folder[PATH_MAX], word[SY_STATE_NAME_SIZE];
	bool own;

	if (!conditions->request->cgroup)
		return 0;
	sy_netem_note_mounts(conditions->document, "/proc/self/mounts");
	(void)snprintf(word, sizeof(word), "%.*s", (int)(strlen(conditions->name) - 5),
		       conditions->name);
	if (sy_scope_folder(conditions->request->run_dir, conditions->request->cgroup, word, folder,
			    &own, err) < 0)
		return -1;
	(void)json_object_set_new(get_undo(conditions), "cgroup", json_string(folder));
	(void)json_object_set_new(get_undo(conditions), "own_cgroup", json_boolean(own));
	if (own)
		(void)json_object_set_new(conditions->document, "join_path",
					  json_sprintf("%s/cgroup.procs", folder));
	return 0;
}

/* The routes over a device, once. */
static int save_routes(struct sy_conditions *conditions, const struct sy_condition *condition,
		       struct sy_error *err)
{
	for (int i = 0; condition->spec->has_rto_min && i < condition->placement_count; i++) {
		json_t *routes;

		if (i &&
		    !strcmp(condition->placement[i].device, condition->placement[i - 1].device))
			continue;
		routes = sy_routes_to_json(condition->placement[i].index, err);
		if (!routes)
			return -1;
		(void)json_array_extend(json_object_get(get_undo(conditions), "routes"), routes);
		json_decref(routes);
	}
	return 0;
}

static int prepare_routes(struct sy_conditions *conditions, struct sy_error *err)
{
	for (int i = 0; i < conditions->count; i++)
		if (save_routes(conditions, &conditions->item[i], err) < 0)
			return -1;
	return 0;
}

/* Routes are the node's, and so is their rto_min: the request has one. */
static int change_kernel(struct sy_conditions *conditions, struct sy_error *err)
{
	if (sy_conditions_build(conditions, err) < 0 || sy_conditions_attach(conditions, err) < 0)
		return -1;
	return sy_routes_set(json_object_get(get_undo(conditions), "routes"),
			     conditions->request->spec->rto_min_us, err);
}

static void roll_back(struct sy_conditions *conditions)
{
	struct sy_error reason = {{0}};

	if (sy_undo_tree(&conditions->states, conditions->name, conditions->document, &reason) ==
	    0) {
		(void)sy_state_remove(&conditions->states, conditions->name, NULL);
		return;
	}
	(void)json_object_set_new(conditions->document, "invalid_reason", json_string(reason.text));
	/* It has no owner: the next process that undoes leftovers tries again. */
	(void)json_object_set_new(conditions->document, "watch_pid", json_integer(INT32_MAX));
	(void)json_object_del(conditions->document, "marks");
	(void)sy_state_save(&conditions->states, conditions->name, conditions->document, NULL);
}

/* All steps of a job share one condition. 1: it holds already and is conditions->document now; 0:
 * there is none yet, or the process that was applying it was killed. */
static int find_applied(struct sy_conditions *conditions, struct sy_error *err)
{
	json_t *state = json_object_get(conditions->states.all, conditions->name);
	const char *applied = json_string_value(json_object_get(state, "requested"));
	enum sy_owner owner = sy_state_find_owner(state);
	char requested[SY_NETEM_SIZE];

	if (!applied || owner == SY_OWNER_GONE || owner == SY_OWNER_AND_KERNEL_GONE ||
	    (owner == SY_OWNER_LIVES && !json_is_real(json_object_get(state, "apply_s"))))
		return 0;
	(void)sy_netem_format(conditions->request->spec, requested);
	if (owner != SY_OWNER_LIVES || strcmp(applied, requested))
		return sy_fail(err,
			       "job %s has a condition on this node already, %s; one job, one "
			       "condition",
			       conditions->request->job_id, applied);
	json_decref(conditions->document);
	conditions->document = json_incref(state);
	return 1;
}

/* Before anything is measured: with the condition in force it would be no `before`. */
static int join_other_step(struct sy_conditions *conditions, struct sy_error *err)
{
	int result = sy_states_open(conditions->request->run_dir, false, &conditions->states, err);

	if (result == 0)
		result = find_applied(conditions, err);
	else if (result == 1) /* no folder */
		result = 0;
	sy_states_close(&conditions->states);
	return result;
}

/* The process that requested the conditions was killed, or no longer waits for the answer. */
static bool is_caller_gone(int answer_fd)
{
	struct pollfd answer = {.fd = answer_fd};

	return answer_fd > 0 && poll(&answer, 1, 0) > 0 && answer.revents & (POLLERR | POLLHUP);
}

/* The process that would undo it may have been killed during an echo: it has looked for a
 * condition, found none yet, and will not look again. */
static int check_wanted(const struct sy_conditions *conditions, struct sy_error *err)
{
	if (sy_state_find_owner(conditions->document) != SY_OWNER_LIVES)
		return sy_fail(
		    err,
		    "process %d, at whose end it would be undone, has ended: nothing has changed",
		    (int)conditions->request->watch);
	if (is_caller_gone(conditions->request->answer_fd))
		return sy_fail(err, "the process that requested it has ended: nothing has changed");
	return 0;
}

/* 1: another step of the job has done it. */
static int apply_locked(struct sy_conditions *conditions, struct sy_error *err)
{
	double start = sy_now_s(CLOCK_MONOTONIC);
	int shared;

	if (sy_states_open(conditions->request->run_dir, true, &conditions->states, err) < 0)
		return -1;
	(void)sy_undo_stale(&conditions->states, "next job", NULL);
	shared = find_applied(conditions, err);
	if (shared)
		return shared;
	if (check_wanted(conditions, err) < 0)
		return -1;
	if (json_object_get(conditions->states.all, conditions->name) &&
	    sy_undo_state(&conditions->states, conditions->name, "next job", err) < 0)
		return -1;
	if (sy_conditions_place(conditions, err) < 0 || prepare_routes(conditions, err) < 0 ||
	    prepare_scope(conditions, err) < 0 ||
	    sy_state_save(&conditions->states, conditions->name, conditions->document, err) < 0)
		return -1;
	if (change_kernel(conditions, err) < 0) {
		roll_back(conditions);
		return -1;
	}
	(void)json_object_set_new(conditions->document, "apply_s",
				  json_real(sy_now_s(CLOCK_MONOTONIC) - start));
	if (sy_state_save(&conditions->states, conditions->name, conditions->document, err) == 0)
		return 0;
	roll_back(conditions);
	return -1;
}

/* Measured without the lock, so that nobody waits for our echoes. */
static int verify(struct sy_conditions *conditions, struct sy_error *err)
{
	sy_states_close(&conditions->states);
	sy_conditions_measure(conditions->document, "during_start", 0);
	sy_conditions_judge(conditions->document);
	if (sy_states_open(conditions->request->run_dir, true, &conditions->states, err) < 0)
		return -1;
	if (!json_object_get(conditions->states.all, conditions->name))
		return sy_fail(err, "it was undone while it was being verified");
	if (check_wanted(conditions, err) < 0 ||
	    sy_state_save(&conditions->states, conditions->name, conditions->document, err) < 0 ||
	    sy_conditions_follow(conditions, err) < 0) {
		roll_back(conditions);
		return -1;
	}
	return 0;
}

static int apply_new(struct sy_conditions *conditions, struct sy_error *err)
{
	int result;

	if (sy_conditions_expand(conditions, err) < 0 ||
	    sy_conditions_make_document(conditions, err) < 0)
		return -1;
	sy_conditions_measure(conditions->document, "before", 0);
	result = apply_locked(conditions, err);
	return result ? result : verify(conditions, err);
}

int sy_netem_apply(const struct sy_netem_request *request, json_t **document,
		   enum sy_netem_failure *failure, struct sy_error *err)
{
	struct sy_conditions conditions = {.request = request, .states = SY_STATES_NONE};
	int result = -1;

	collect_protected(&conditions);
	if (check_request(&conditions, err) == 0 &&
	    sy_state_make_name(conditions.name, request->node, request->job_id, false, err) == 0) {
		result = join_other_step(&conditions, err);
		if (result == 0)
			result = apply_new(&conditions, err);
	}
	sy_states_close(&conditions.states);
	*failure = conditions.failure;
	if (result >= 0) {
		*document = json_deep_copy(conditions.document);
		sy_state_remove_private(*document);
	}
	sy_conditions_free(&conditions);
	return result < 0 ? -1 : 0;
}
