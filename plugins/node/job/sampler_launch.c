#include "job/sampler_launch.h"

#include "base/clock.h"
#include "base/file.h"
#include "job/control_sockets.h"
#include "job/node_command.h"
#include "job/node_log.h"
#include "record/waiting_samplers.h"
#include "sampler/control_socket.h"

#include <stdio.h>
#include <unistd.h>

#define CONTROL_FD     (SY_SPAWN_FDS - 1)
#define JOB_FIELDS_MAX 16
#define NUMBERS	       8

static void fill_numbers(struct sy_arguments *to, const struct sy_launch *launch, char (*text)[32])
{
	(void)snprintf(text[0], sizeof(text[0]), "%g", launch->rate_hz);
	(void)snprintf(text[1], sizeof(text[1]), "%d", (int)launch->watch);
	(void)snprintf(text[2], sizeof(text[2]), "%u:%u", launch->uid, launch->gid);
	(void)snprintf(text[3], sizeof(text[3]), "%d", CONTROL_FD);
	(void)snprintf(text[4], sizeof(text[4]), "%d", (int)launch->parent);
	(void)snprintf(text[5], sizeof(text[5]), "%u", launch->linger_s);
	(void)snprintf(text[6], sizeof(text[6]), "%llu",
		       sy_control_made_ns(launch->control->sun_path));
	(void)snprintf(text[7], sizeof(text[7]), "%lld", (long long)sy_now_us(CLOCK_MONOTONIC));
	sy_option(to, "--rate", text[0]);
	if (launch->watch)
		sy_option(to, "--watch", text[1]);
	sy_option(to, "--owner", text[2]);
	sy_option(to, "--control", launch->control->sun_path);
	sy_option(to, "--control-fd", text[3]);
	sy_option(to, "--control-made", text[6]);
	sy_option(to, "--launched", text[7]);
	if (launch->parent)
		sy_option(to, "--parent", text[4]);
	if (launch->linger_s)
		sy_option(to, "--linger", text[5]);
}

/* `met`: another job's sampler runs on the node, whatever the scheduler reports. */
static void fill_arguments(struct sy_arguments *to, const struct sy_launch *launch, bool met,
			   char (*text)[32])
{
	sy_begin_arguments(to, &launch->program);
	sy_argument(to, "sample");
	sy_option(to, "--record-dir", launch->record_dir);
	sy_option(to, "--run-dir", launch->program.run_dir);
	sy_option(to, "--job-id", launch->job_id);
	sy_option(to, "--node", launch->node);
	if (launch->root)
		sy_option(to, "--root", launch->root);
	fill_numbers(to, launch, text);
	if (launch->bpf)
		sy_option(to, "--bpf", launch->bpf);
	for (int i = 0; i < launch->marks; i++)
		sy_option(to, "--orphan", launch->mark[i]);
	for (size_t i = 0; launch->job_fields[i] && i < JOB_FIELDS_MAX; i++)
		sy_option(to, "--job", launch->job_fields[i]);
	if (met)
		sy_option(to, "--job", "exclusive=no");
	for (size_t i = 0; launch->tags && i < launch->tags->count; i++)
		sy_option(to, "--tag", launch->tags->items[i]);
}

int sy_launch_sampler(const struct sy_launch *launch, pid_t *pid, struct sy_error *err)
{
	struct sy_arguments arguments;
	char text[NUMBERS][32];
	cleanup_close int control = -1, complaints = -1;
	bool met;

	if (sy_run_dir_make(launch->program.run_dir, err) < 0)
		return -1;
	if (sy_opening_count(launch->program.run_dir) >= SY_OPENING_MAX)
		return sy_fail(err,
			       "%d samplers of this node wait already for the record folder %s, "
			       "which does not answer",
			       SY_OPENING_MAX, launch->record_dir);
	control = sy_control_bind(launch->control, err);
	if (control < 0)
		return -1;
	complaints = sy_log_open(launch->program.run_dir, launch->node);
	met = sy_control_meet_other_jobs(launch->program.run_dir, launch->node, launch->control);
	fill_arguments(&arguments, launch, met, text);
	if (sy_spawn_pid(&arguments, (int[SY_SPAWN_FDS]){-1, -1, complaints, control}, pid, err) <
	    0) {
		(void)unlink(launch->control->sun_path);
		return -1;
	}
	return 0;
}
