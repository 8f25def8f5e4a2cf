/* A sweep ends jobs that are gone without an end, and removes leftovers of killed processes. */
#include "job/job.h"

#include "bpf/pins.h"
#include "job/config.h"
#include "job/kernel_count.h"
#include "job/node_command.h"
#include "record/unfinished_records.h"

#include <jansson.h>
#include <string.h>

#define BEGIN_S 60 /* of a job that has just begun processes may still come */

static bool is_alive(const struct sy_job_sweep *sweep, const char *job_id)
{
	for (int i = 0; i < sweep->alive_count; i++)
		if (!strcmp(sweep->alive[i], job_id))
			return true;
	return !sweep->knows_alive;
}

/* NULL: the job continues, or may still begin. */
static const char *find_end_reason(const struct sy_job_sweep *sweep,
				   const struct sy_job_state *state, const char *job_id)
{
	bool sampled = sy_job_state_process(state, "sampler") > 0;
	bool begun = json_is_true(json_object_get(state->json, "begun"));
	bool known = is_alive(sweep, job_id);

	if ((known && sampled && begun) || state->age_s < BEGIN_S || sy_job_state_job_lives(state))
		return NULL;
	return !known	  ? "the scheduler does not know it any more"
	       : !sampled ? "its sampler and its processes are gone"
			  : "its begin was killed, and nothing of it has come";
}

static void sweep_job(const struct sy_job_sweep *sweep, const char *job_id)
{
	cleanup_job_state struct sy_job_state state = SY_JOB_STATE_NONE;
	struct sy_job_end job = sweep->job;
	const char *reason, *message;

	job.job_id = job_id;
	if (sy_job_state_open(&state, job.config.run_dir, job.node, job_id, false, 0, NULL) != 0)
		return; /* another process works on it */
	message = json_string_value(json_object_get(state.json, "job_id"));
	if (message && strcmp(message, job_id) != 0)
		return; /* of a node whose name is ours, a point, and more */
	reason = find_end_reason(sweep, &state, job_id);
	if (!reason)
		return;
	sy_job_abandon(&job, &state, reason);
	sy_job_state_remove(&state);
}

/* Remove leftovers of killed samplers and killed loaders. */
static void sweep_bpf(const struct sy_job_end *job)
{
	const struct sy_node_program program = sy_make_command_job(job).program;
	char path[SY_PATH_SIZE];
	const char *bpf = sy_counted_program(true, job->program, path);

	sy_counted_retry(&program);
	if (bpf && sy_bpf_has_pins(SY_BPF_BASE))
		sy_sweep_bpf(&program, bpf);
}

void sy_job_sweep(const struct sy_job_sweep *sweep)
{
	json_t *list = sy_job_states(sweep->job.config.run_dir, sweep->job.node), *id;
	size_t i;

	json_array_foreach(list, i, id) sweep_job(sweep, json_string_value(id));
	json_decref(list);
	sy_job_sweep_leftovers(&sweep->job);
	sweep_bpf(&sweep->job);
	(void)sy_opening_count(sweep->job.config.run_dir); /* it removes what killed ones left */
}
