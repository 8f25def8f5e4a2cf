#include "netem/apply.h"

#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"
#include "netem/build.h"
#include "netem/condition.h"
#include "netem/follow.h"
#include "netem/kernel/delay_table.h"
#include "netem/kernel/kernel_mounts.h"
#include "netem/kernel/routes.h"
#include "netem/kernel/scope.h"
#include "netem/new_document.h"
#include "netem/placement.h"
#include "netem/scoping.h"
#include "netem/sites_document.h"
#include "netem/spec/text.h"
#include "netem/undo.h"
#include "netem/verify/measure.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void gather_protected(struct sy_condition *condition)
{
	const struct sy_netem_request *request = condition->request;

	for (int i = 0; i < request->protected_count; i++)
		condition->protect[condition->protected_count++] = request->protect[i];
	if (request->policy)
		condition->protected_count += sy_policy_protected(
		    request->policy, condition->protect + condition->protected_count,
		    SY_PROTECTED_MAX);
}

static int check_request(const struct sy_condition *condition, struct sy_error *err)
{
	const struct sy_netem *spec = condition->spec;

	if (geteuid() != 0)
		return sy_fail(err, "only root can put network conditions in place");
	if (spec->none)
		return sy_fail(err, "none asks for nothing: there is nothing to apply");
	if (condition->request->cgroup && spec->direction != SY_EGRESS)
		return sy_fail(err, "direction: incoming packets of one job alone cannot be told "
				    "from others; ask for the node exclusively, or for egress");
	if (condition->request->cgroup && spec->has_rto_min)
		return sy_fail(err, "rto_min: it stands in the node's routes, which one job alone "
				    "does not have; ask for the node exclusively");
	return 0;
}

static json_t *undo_part(struct sy_condition *condition)
{
	return json_object_get(condition->document, "undo");
}

static int plan_scope(struct sy_condition *condition, struct sy_error *err)
{
	char folder[PATH_MAX], word[SY_STATE_NAME_SIZE];
	bool own;

	if (!condition->request->cgroup)
		return 0;
	sy_netem_note_mounts(condition->document, "/proc/self/mounts");
	(void)snprintf(word, sizeof(word), "%.*s", (int)(strlen(condition->name) - 5),
		       condition->name);
	if (sy_scope_folder(condition->request->run_dir, condition->request->cgroup, word, folder,
			    &own, err) < 0)
		return -1;
	(void)json_object_set_new(undo_part(condition), "cgroup", json_string(folder));
	(void)json_object_set_new(undo_part(condition), "own_cgroup", json_boolean(own));
	if (own)
		(void)json_object_set_new(condition->document, "join_path",
					  json_sprintf("%s/cgroup.procs", folder));
	return 0;
}

static int plan_routes(struct sy_condition *condition, struct sy_error *err)
{
	for (int i = 0; condition->spec->has_rto_min && i < condition->count; i++) {
		json_t *routes;

		if (i && !strcmp(condition->place[i].device, condition->place[i - 1].device))
			continue;
		routes = sy_routes_keep(condition->place[i].index, err);
		if (!routes)
			return -1;
		(void)json_array_extend(json_object_get(undo_part(condition), "routes"), routes);
		json_decref(routes);
	}
	return 0;
}

static int change_kernel(struct sy_condition *condition, struct sy_error *err)
{
	if (sy_condition_build(condition, err) < 0 || sy_condition_attach(condition, err) < 0)
		return -1;
	return sy_routes_set(json_object_get(undo_part(condition), "routes"),
			     condition->spec->rto_min_us, err);
}

static void roll_back(struct sy_condition *condition)
{
	struct sy_error why = {{0}};

	if (sy_undo_tree(&condition->states, condition->name, condition->document, &why) == 0) {
		(void)sy_state_remove(&condition->states, condition->name, NULL);
		return;
	}
	(void)json_object_set_new(condition->document, "invalid_reason", json_string(why.text));
	/* Nobody's: whoever comes next tries again. */
	(void)json_object_set_new(condition->document, "watch_pid", json_integer(INT32_MAX));
	(void)json_object_del(condition->document, "marks");
	(void)sy_state_save(&condition->states, condition->name, condition->document, NULL);
}

/* All steps of a job share one condition. 1: it holds already and is condition->document now; 0:
 * there is none yet, or whoever was putting it in place was killed. */
static int find_shared(struct sy_condition *condition, struct sy_error *err)
{
	json_t *state = json_object_get(condition->states.all, condition->name);
	const char *held = json_string_value(json_object_get(state, "requested"));
	enum sy_owner owner = sy_state_owner(state);
	char asked[SY_NETEM_SIZE];

	if (!held || owner == SY_OWNER_GONE || owner == SY_OWNER_AND_KERNEL_GONE ||
	    (owner == SY_OWNER_LIVES && !json_is_real(json_object_get(state, "apply_s"))))
		return 0;
	(void)sy_netem_format(condition->request->spec, asked);
	if (owner != SY_OWNER_LIVES || strcmp(held, asked))
		return sy_fail(err,
			       "job %s has a condition on this node already, %s; one job, one "
			       "condition",
			       condition->request->job_id, held);
	json_decref(condition->document);
	condition->document = json_incref(state);
	return 1;
}

/* Before anything is measured: with the condition in force it would be no `before`. */
static int join_other_step(struct sy_condition *condition, struct sy_error *err)
{
	int result = sy_states_open(condition->request->run_dir, false, &condition->states, err);

	if (result == 0)
		result = find_shared(condition, err);
	else if (result == 1) /* no folder */
		result = 0;
	sy_states_close(&condition->states);
	return result;
}

/* Nobody can read the answer any more: whoever asked was killed, or has lost patience. */
static bool asker_gone(int answer_fd)
{
	struct pollfd answer = {.fd = answer_fd};

	return answer_fd > 0 && poll(&answer, 1, 0) > 0 && answer.revents & (POLLERR | POLLHUP);
}

/* Whoever would undo it may have been killed while echoes were under way: then he has looked for a
 * condition, found none yet, and will not look again. */
static int still_wanted(const struct sy_condition *condition, struct sy_error *err)
{
	if (sy_state_owner(condition->document) != SY_OWNER_LIVES)
		return sy_fail(err,
			       "process %d, at whose end it would be undone, is there no more: "
			       "nothing has changed",
			       (int)condition->request->watch);
	if (asker_gone(condition->request->answer_fd))
		return sy_fail(err, "whoever asked for it is there no more: nothing has changed");
	return 0;
}

/* 1: another step of the job has done it. */
static int under_lock(struct sy_condition *condition, struct sy_error *err)
{
	double start = sy_now_s(CLOCK_MONOTONIC);
	int shared;

	if (sy_states_open(condition->request->run_dir, true, &condition->states, err) < 0)
		return -1;
	(void)sy_undo_stale(&condition->states, "next job", NULL);
	shared = find_shared(condition, err);
	if (shared)
		return shared;
	if (still_wanted(condition, err) < 0)
		return -1;
	if (json_object_get(condition->states.all, condition->name) &&
	    sy_undo_state(&condition->states, condition->name, "next job", err) < 0)
		return -1;
	if (sy_condition_place(condition, err) < 0 || plan_routes(condition, err) < 0 ||
	    plan_scope(condition, err) < 0 ||
	    sy_state_save(&condition->states, condition->name, condition->document, err) < 0)
		return -1;
	if (change_kernel(condition, err) < 0) {
		roll_back(condition);
		return -1;
	}
	(void)json_object_set_new(condition->document, "apply_s",
				  json_real(sy_now_s(CLOCK_MONOTONIC) - start));
	return sy_state_save(&condition->states, condition->name, condition->document, err);
}

static void measure(struct sy_condition *condition, const char *moment, uint32_t priority)
{
	struct sy_measure how = {
	    .peer = json_string_value(json_object_get(condition->document, "peer")),
	    .spec = condition->spec,
	    .count = SY_MEASURE_COUNT,
	    .priority = priority,
	};

	if (condition->sites)
		sy_sites_measure(condition->document, moment, 0);
	else
		sy_netem_measure_into(condition->document, moment, &how);
}

static void judge(const struct sy_condition *condition)
{
	if (condition->sites)
		sy_sites_judge(condition->document);
	else
		sy_netem_judge(condition->document, condition->spec);
}

/* Measured without the lock, so that nobody waits for our echoes. */
static int verify(struct sy_condition *condition, struct sy_error *err)
{
	uint32_t priority =
	    condition->request->cgroup ? SY_ROOT_MAJOR << 16 | condition->place[0].band : 0;

	sy_states_close(&condition->states);
	measure(condition, "during_start", priority);
	judge(condition);
	if (sy_states_open(condition->request->run_dir, true, &condition->states, err) < 0)
		return -1;
	if (!json_object_get(condition->states.all, condition->name))
		return sy_fail(err, "it was undone while it was being verified");
	if (still_wanted(condition, err) < 0) {
		roll_back(condition);
		return -1;
	}
	return sy_state_save(&condition->states, condition->name, condition->document, err);
}

/* Its first step is put in place like any condition; a process of its own follows it from there. */
static int follow_trace(struct sy_condition *condition, const struct sy_trace *trace,
			struct sy_error *err)
{
	int result;

	if (sy_trace_allowed(trace, condition->request->policy, err) < 0)
		return -1;
	(void)json_object_set_new(condition->document, "trace",
				  sy_follow_document(condition->request->spec, trace));
	condition->spec = &trace->step[0].spec;
	condition->trace = trace;
	measure(condition, "before", 0);
	result = under_lock(condition, err);
	if (result == 0)
		result = verify(condition, err);
	if (result == 0)
		result = sy_condition_follow(condition, trace, err);
	condition->spec = condition->request->spec;
	condition->trace = NULL;
	return result;
}

static int apply_trace(struct sy_condition *condition, struct sy_error *err)
{
	struct sy_trace trace;
	int result;

	if (sy_trace_read(SY_TRACES, condition->request->spec, &trace, err) < 0)
		return -1;
	result = follow_trace(condition, &trace, err);
	sy_trace_free(&trace);
	return result;
}

/* Each link is placed, built and verified; they stand and fall together, as one state. */
static int apply_sites(struct sy_condition *condition, struct sy_error *err)
{
	struct sy_own_addresses own;
	struct sy_sites sites;
	json_t *told;
	int result;

	if (sy_own_addresses_read(&own, err) < 0 ||
	    sy_sites_read(SY_SITES, condition->spec->sites, &own, &sites, err) < 0 ||
	    sy_sites_allowed(&sites, condition->request->policy, err) < 0)
		return -1;
	told = sy_sites_document(condition, &sites, err);
	if (!told)
		return -1;
	(void)json_object_set_new(condition->document, "sites", told);
	condition->sites = &sites;
	measure(condition, "before", 0);
	result = under_lock(condition, err);
	if (result == 0)
		result = verify(condition, err);
	condition->sites = NULL;
	return result;
}

static int apply_anew(struct sy_condition *condition, struct sy_error *err)
{
	json_t *table =
	    sy_delay_table_read(SY_DELAY_TABLES, condition->spec, SY_MEASURE_COUNT, err);
	int result;

	if (!table)
		return -1;
	condition->document = sy_condition_new_document(condition, err);
	if (!condition->document)
		return json_decref(table), -1;
	(void)json_object_set_new(condition->document, "delay_table", table);
	if (condition->spec->has_trace)
		return apply_trace(condition, err);
	if (condition->spec->has_sites)
		return apply_sites(condition, err);
	measure(condition, "before", 0);
	result = under_lock(condition, err);
	return result ? result : verify(condition, err);
}

int sy_netem_apply(const struct sy_netem_request *request, json_t **conditions,
		   enum sy_netem_failure *failure, struct sy_error *err)
{
	struct sy_condition condition = {
	    .request = request, .spec = request->spec, .states = SY_STATES_NONE};
	int result = -1;

	gather_protected(&condition);
	if (check_request(&condition, err) == 0 &&
	    sy_state_name(condition.name, request->node, request->job_id, false, err) == 0) {
		result = join_other_step(&condition, err);
		if (result == 0)
			result = apply_anew(&condition, err);
	}
	sy_states_close(&condition.states);
	*failure = condition.failure;
	if (result >= 0) {
		*conditions = json_deep_copy(condition.document);
		sy_state_strip(*conditions);
	}
	json_decref(condition.document);
	return result < 0 ? -1 : 0;
}
