/* A job begins on this node: start its sampler and apply the requested conditions. */
#include "job/job.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"
#include "counters/process_alive.h"
#include "job/accounting_report.h"
#include "job/conditions.h"
#include "job/config.h"
#include "job/kernel_count.h"
#include "job/node_command.h"
#include "job/node_log.h"
#include "job/record_lookup.h"
#include "job/samplers.h"
#include "job/state.h"
#include "netem/spec/spec.h"
#include "sampler/control_socket.h"

#define PATIENCE_MS 40000 /* for an end of the same job */
#define LINGER_S    300	  /* a restarted pbs_mom checks its jobs every 45 s */
#define READY_MS    2000
#define FOLDER_MS   500	 /* of the folder of records, whose file system may not answer */
#define COUNTED_MS  1500 /* below what a prologue waits for us */

struct begin {
	struct sy_job_begin *job;
	struct sy_job_state state;
	struct sockaddr_un control;
	struct sy_message_queue queue;
	struct sy_command_job command;
	struct sy_addresses protect;
	gid_t groups[SY_GROUPS_MAX];
	pid_t watch; /* at whose end anybody may undo the conditions */
	double begin_unix_s;
	char netem[SY_NETEM_SIZE];
	char beside[SY_PATH_SIZE];
	const char *bpf; /* steelyard-bpf; NULL: the kernel does not count */
};

static struct sy_job_end make_end(const struct sy_job_begin *job)
{
	return (struct sy_job_end){.config = job->config,
				   .program = job->program,
				   .job_id = job->job_id,
				   .node = job->node};
}

#define LOG(job, ...) sy_log_write((job)->config.run_dir, (job)->node, (job)->job_id, __VA_ARGS__)

/* --- an earlier begin of this job --- */

static bool is_same_start(const struct begin *b)
{
	const char *known = json_string_value(json_object_get(b->state.json, "restart_count"));
	const char *now = b->job->restart_count;

	if (known && now && strcmp(known, now) != 0)
		return false;
	return sy_job_state_is_process(&b->state, "parent", b->job->parent) ||
	       sy_job_state_job_lives(&b->state);
}

/* True when this start of the job has been handled already: then only new facts are sent. */
static bool is_continuation(const struct begin *b)
{
	return json_is_true(json_object_get(b->state.json, "begun")) &&
	       sy_control_connect(&b->control) == 0 && is_same_start(b);
}

static void end_leftover(struct begin *b)
{
	struct sy_job_end end = make_end(b->job);

	if (json_object_size(b->state.json) > 0 || sy_control_connect(&b->control) == 0 ||
	    sy_has_conditions(&b->command))
		sy_job_abandon(&end, &b->state, "left by an earlier start of the job");
}

/* --- the sampler --- */

static void write_state(struct begin *b, pid_t sampler, bool begun)
{
	const struct sy_job_begin *job = b->job;
	json_t *marks = json_array();
	struct sy_error err;

	for (int i = 0; i < job->marks; i++)
		(void)json_array_append_new(marks, sy_json_text(job->mark[i]));
	(void)json_object_set_new(b->state.json, "node", sy_json_text(job->node));
	(void)json_object_set_new(b->state.json, "job_id", sy_json_text(job->job_id));
	(void)json_object_set_new(b->state.json, "marks", marks);
	(void)json_object_set_new(b->state.json, "user_id", json_integer(job->uid));
	(void)json_object_set_new(b->state.json, "begun", json_boolean(begun));
	(void)json_object_set_new(b->state.json, "begin_unix_s", json_real(b->begin_unix_s));
	if (job->restart_count)
		(void)json_object_set_new(b->state.json, "restart_count",
					  sy_json_text(job->restart_count));
	sy_job_state_set_process(&b->state, "parent", job->parent);
	sy_job_state_set_process(&b->state, "sampler", sampler);
	if (sy_job_state_save(&b->state, &err) < 0)
		LOG(job, "%s", err.text);
}

static struct sy_launch make_launch(struct begin *b, char (*text)[64])
{
	struct sy_job_begin *job = b->job;
	struct sy_launch launch = {.program = b->command.program,
				   .record_dir = job->config.record_dir,
				   .job_id = job->job_id,
				   .node = job->node,
				   .root = job->config.root[0] ? job->config.root : NULL,
				   .bpf = b->bpf,
				   .rate_hz = job->config.rate_hz,
				   .watch = job->parent,
				   .parent = job->parent,
				   .linger_s = LINGER_S,
				   .uid = job->uid,
				   .gid = job->gid,
				   .control = &b->control,
				   .marks = job->marks,
				   .job_fields = job->field,
				   .tags = &job->user_options.tags};

	(void)snprintf(text[0], 64, "user_id=%u", job->uid);
	job->field[job->fields] = text[0];
	if (job->restart_count) {
		(void)snprintf(text[1], 64, "restart_count=%.40s", job->restart_count);
		job->field[job->fields + 1] = text[1];
	}
	memcpy(launch.mark, job->mark, sizeof(job->mark));
	return launch;
}

/* 0: no sampler; the log has the reason. */
static pid_t start_sampler(struct begin *b)
{
	char text[2][64];
	struct sy_launch launch = make_launch(b, text);
	struct sy_error err;
	pid_t pid = 0;

	if (sy_launch_sampler(&launch, &pid, &err) < 0) {
		LOG(b->job, "not sampled: %s", err.text);
		return 0;
	}
	return pid;
}

/* Usage of the cgroup before this moment is not the job's; afterwards the kernel counts it. When
 * the sampler has answered, the job may start. */
static void await_counting(struct begin *b, bool is_new)
{
	if ((b->job->cgroup || b->bpf) && sy_queue_await_answer(&b->queue, COUNTED_MS) && b->bpf &&
	    is_new)
		sy_queue_send(&b->queue, "intime");
}

/* A new sampler has the tags among its arguments: while it starts, its socket queues only ten
 * messages. */
static void announce_start(struct begin *b, bool is_new)
{
	const struct sy_job_begin *job = b->job;

	if (!sy_queue_open(&b->queue, &b->control))
		return;
	if (job->late)
		sy_queue_send(&b->queue, "late");
	if (job->session > 0)
		sy_queue_send(&b->queue, "session %d", (int)job->session);
	if (job->cgroup)
		sy_queue_send(&b->queue, "cgroup %s", job->cgroup);
	if (job->exclusive || job->shared)
		sy_queue_send(&b->queue, "exclusive %s", job->exclusive ? "yes" : "no");
	if (job->user_options.has_rate)
		sy_queue_send(&b->queue, "rate %g", job->user_options.rate_hz);
	for (size_t i = 0; !is_new && i < job->user_options.tags.count; i++)
		sy_queue_send(&b->queue, "tag %s", job->user_options.tags.items[i]);
	await_counting(b, is_new && !job->late);
}

static void close_queue(struct begin *b)
{
	sy_queue_drain(&b->queue, READY_MS);
	if (b->queue.fd >= 0 && b->queue.count > 0)
		LOG(b->job, "the sampler has not taken %zu messages", b->queue.count);
	sy_queue_close(&b->queue);
}

/* --- conditions --- */

static void find_protected(struct begin *b)
{
	char hosts[SY_HOSTS_SIZE], *rest = hosts, *host;

	(void)snprintf(hosts, sizeof(hosts), "%s", b->job->config.protect);
	while ((host = strsep(&rest, ",")))
		sy_addresses_add_host(&b->protect, host);
}

/* All of the user's groups: the policy may name any. */
static void find_asker(struct begin *b)
{
	const struct sy_job_begin *job = b->job;
	const struct passwd *user = getpwuid(job->uid);
	int count = SY_GROUPS_MAX;

	b->groups[0] = job->gid;
	if (!user || getgrouplist(user->pw_name, job->gid, b->groups, &count) < 0)
		count = user ? SY_GROUPS_MAX : 1;
	b->command.policy = job->config.netem_policy;
	b->command.uid = job->uid;
	b->command.groups = b->groups;
	b->command.group_count = (size_t)count;
	b->command.partition = job->partition;
	b->command.has_whole_host = job->exclusive;
}

static int apply_netem(struct begin *b, struct sy_error *err)
{
	const struct sy_job_begin *job = b->job;
	struct sy_addresses peers = {.count = 0};
	char join_path[SY_PATH_SIZE] = "", peer[SY_ADDRESS_SIZE] = "";
	struct sy_shape_request request = {.text = b->netem,
					   .watch = b->watch,
					   .cgroup = job->cgroup ? job->cgroup : "/",
					   .peer = peer,
					   .protect = &b->protect,
					   .mark = job->mark,
					   .marks = job->marks > 0}; /* as sy_job_state_job_lives */

	if (job->exclusive)
		request.cgroup = NULL;
	else if (!job->cgroup && !job->joins)
		return sy_fail(err,
			       "the job shares its node, and has no cgroup there by which its "
			       "traffic could be distinguished from others': ask for whole nodes");
	if (sy_refuse_scheduler(&job->user_options.netem, &b->protect,
				"its server or a node's daemon", err) < 0)
		return -1;
	sy_addresses_add_host(&peers, job->peer);
	if (peers.count > 0)
		(void)snprintf(peer, sizeof(peer), "%s", peers.text[0]);
	sy_find_peer(&job->user_options.netem, peer);
	if (sy_conditions_shape(&b->command, &request, join_path, err) < 0)
		return -1;
	if (join_path[0] && !job->joins)
		return sy_fail(
		    err,
		    "the job shares its node, and its cgroup %s there is of version "
		    "1, by which its traffic cannot be distinguished from others': ask for "
		    "whole nodes",
		    job->cgroup);
	return join_path[0] ? sy_join_cgroup(job->join, job->joins, join_path, err) : 0;
}

/* The process whose end shows that no process manages the job any longer. The sampler is queried,
 * since a sampler that cannot write its record ends within a moment. */
static void find_watch(struct begin *b, pid_t sampler)
{
	b->watch = sampler && sy_queue_await_answer(&b->queue, READY_MS) ? sampler : b->job->parent;
}

static int establish_conditions(struct begin *b, struct sy_error *reason)
{
	const struct sy_user_options *options = &b->job->user_options;
	struct sy_error err;

	find_protected(b);
	find_asker(b);
	if (options->has_netem && !options->netem.none && apply_netem(b, &err) < 0)
		return sy_fail(reason, "--netem=%s: %s", b->netem, err.text);
	if (options->cache == SY_CACHE_COLD &&
	    sy_conditions_drop_caches(&b->command, options->cvmfs_mb, &b->queue, &err) < 0)
		return sy_fail(reason, "--cache=cold: %s", err.text);
	return 0;
}

static int handle_conditions(struct begin *b, pid_t sampler, struct sy_error *reason)
{
	const struct sy_user_options *options = &b->job->user_options;
	int result = 0;

	if (options->has_netem)
		(void)sy_netem_format(&options->netem, b->netem);
	if (options->has_netem && options->netem.none && !options->fault[0])
		sy_queue_send(&b->queue, "tag network=none");
	sy_report_unmet_conditions(options, "asked for, not in place yet", NULL, &b->queue);
	if (b->job->late) {
		(void)sy_fail(reason, "the job's start was not reported on this node");
		sy_report_unmet_conditions(options, "refused", reason->text, &b->queue);
	} else if (options->fault[0]) {
		result = sy_fail(reason, "%s", options->fault);
	} else if (sy_user_options_change_node(options)) {
		find_watch(b, sampler);
		result = establish_conditions(b, reason);
	}
	if (result < 0)
		sy_report_unmet_conditions(options, "refused", reason->text, &b->queue);
	return result;
}

/* --- all of it --- */

static json_t *read_newest_start(const void *context)
{
	const struct sy_job_begin *job = context;

	return json_integer(sy_record_newest(job->config.record_dir, job->job_id, job->node));
}

static json_t *read_earlier_starts(const void *context)
{
	const struct begin *b = context;

	return sy_report_earlier(b->job->config.record_dir, b->job->job_id, b->job->node,
				 b->begin_unix_s);
}

/* True when the job is known already: a late caller has nothing to add. A record folder that does
 * not answer may have its record. */
static bool is_known(const struct begin *b)
{
	json_t *start;
	bool known;

	if (json_object_size(b->state.json) > 0)
		return true;
	start = sy_json_within(FOLDER_MS, read_newest_start, b->job);
	known = !start || json_integer_value(start) > 0;
	json_decref(start);
	return known;
}

static int begin_start(struct begin *b, struct sy_error *refusal)
{
	struct sy_job_end end = make_end(b->job);
	pid_t sampler;
	int result;
	json_t *starts;

	sy_job_sweep_leftovers(&end);
	b->bpf = sy_counted_program(b->job->config.bpf, b->job->program, b->beside);
	b->begin_unix_s = sy_now_s(CLOCK_REALTIME);
	starts = sy_json_within(FOLDER_MS, read_earlier_starts, b);
	if (!starts)
		LOG(b->job, "the record folder %s has not answered within %d ms",
		    b->job->config.record_dir, FOLDER_MS);
	(void)json_object_set_new(b->state.json, "earlier_starts", starts ? starts : json_null());
	write_state(b, 0, false);
	sampler = start_sampler(b);
	write_state(b, sampler, false);
	announce_start(b, true);
	result = handle_conditions(b, sampler, refusal);
	close_queue(b);
	if (result < 0) {
		LOG(b->job, "refused: %s", refusal->text);
		sy_job_give_up(&end, &b->state);
		return -1;
	}
	write_state(b, sampler, true);
	return 0;
}

int sy_job_begin(struct sy_job_begin *job, struct sy_error *refusal)
{
	struct begin b = {.job = job, .state = SY_JOB_STATE_NONE, .queue = {.fd = -1}};
	struct sy_job_end end = make_end(job);
	struct sy_error err;
	int result = 0;

	if (job->parent > 0)
		job->parent = sy_topmost(job->parent);
	b.command = sy_make_command_job(&end);
	if (!sy_control_address(&b.control, job->config.run_dir, job->node, job->job_id))
		(void)sy_fail(&err, "run_dir=%s is too long for a socket", job->config.run_dir);
	else if (sy_run_dir_make(job->config.run_dir, &err) == 0 &&
		 sy_job_state_open(&b.state, job->config.run_dir, job->node, job->job_id, true,
				   PATIENCE_MS, &err) == 0) {
		if (job->late && is_known(&b)) {
			if (json_object_size(b.state.json) == 0)
				sy_job_state_remove(&b.state);
		} else if (is_continuation(&b)) {
			announce_start(&b, false);
			close_queue(&b);
		} else {
			end_leftover(&b);
			result = begin_start(&b, refusal);
		}
		sy_job_state_close(&b.state);
		return result;
	}
	LOG(job, "not sampled: %s", err.text);
	if (!sy_user_options_change_node(&job->user_options) && !job->user_options.fault[0])
		return 0;
	return sy_fail(refusal, "%s", err.text);
}
