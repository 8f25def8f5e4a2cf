/* A job ends on this node, by its scheduler's message; or one that a sweep (sweep.c) has found. */
#include "job/job.h"

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"
#include "base/kernel_uapi.h"
#include "job/accounting_report.h"
#include "job/conditions.h"
#include "job/container_leftovers.h"
#include "job/node_command.h"
#include "job/node_log.h"
#include "job/samplers.h"
#include "sampler/control_socket.h"

#define PATIENCE_MS 40000 /* for a begin of the same job */
/* A folder of records that does not answer holds the job's end for their sum at most: 5 s. */
#define ANSWER_MS 500
#define END_MS	  3500 /* for the sampler's last messages, and its own end */
#define FOLDER_MS 1000

struct sy_command_job sy_make_command_job(const struct sy_job_end *job)
{
	return (struct sy_command_job){.program = {.path = job->program,
						   .run_dir = job->config.run_dir,
						   .egress = sy_egress_to_top},
				       .node = job->node,
				       .job_id = job->job_id};
}

static void undo_conditions(const struct sy_job_end *job, const char *by)
{
	struct sy_command_job command = sy_make_command_job(job);
	struct sy_error err;

	if (sy_conditions_finish(&command, by, &err) < 0)
		sy_log_write(job->config.run_dir, job->node, job->job_id,
			     "network conditions not undone yet: %s", err.text);
}

static int remaining_ms(int64_t until_ms)
{
	int64_t remaining = until_ms - sy_now_ms(CLOCK_MONOTONIC);

	return remaining > 0 ? (int)remaining : 0;
}

/* Until the sampler has written its record and is gone; where it was killed, its child, too, which
 * listens a moment longer: before that nobody else may finish the record. */
static void wait_for_end(pid_t sampler, const struct sockaddr_un *control, int64_t until_ms)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	cleanup_close int fd = sampler > 0 ? (int)syscall(SYS_pidfd_open, sampler, 0) : -1;
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	if (fd >= 0)
		(void)poll(&ended, 1, remaining_ms(until_ms));
	while (remaining_ms(until_ms) > 0 && sy_control_connect(control) == 0)
		(void)nanosleep(&pause, NULL);
}

/* What it has counted so far; then `last` ends it. False: it did not answer. */
static bool end_sampler(const struct sy_job_end *job, pid_t sampler, const char *last, char *totals,
			size_t size)
{
	static struct sy_message_queue queue;
	struct sockaddr_un control;
	int64_t until_ms;
	bool answered;

	if (!sy_control_address(&control, job->config.run_dir, job->node, job->job_id) ||
	    !sy_queue_open(&queue, &control))
		return false;
	if (job->exclusive)
		sy_queue_send(&queue, "exclusive yes");
	if (job->exit_status)
		sy_queue_send(&queue, "job exit_status %s", job->exit_status);
	answered = sy_queue_request_totals(&queue, totals, size, ANSWER_MS) > 0;
	until_ms = sy_now_ms(CLOCK_MONOTONIC) + END_MS;
	sy_queue_send(&queue, "%s", last);
	sy_queue_drain(&queue, END_MS);
	if (queue.count > 0 && sampler > 0) /* it does not read */
		(void)kill(sampler, SIGTERM);
	sy_queue_close(&queue);
	wait_for_end(sampler, &control, until_ms);
	(void)unlink(control.sun_path);
	return answered;
}

static json_t *make_line(const void *context)
{
	char *line = sy_report_text(context);
	json_t *text = line ? json_string(line) : NULL;

	free(line);
	return text;
}

/* Where the record folder does not answer: the sampler's answer, without its record. */
static char *report_line(struct sy_report *report)
{
	json_t *text = sy_json_within(FOLDER_MS, make_line, report);
	char *line = NULL;

	if (text) {
		line = strdup(json_string_value(text));
		json_decref(text);
		return line;
	}
	report->record_dir = "/dev/null";
	return sy_report_text(report);
}

static const struct sy_job_end *ending;

static void log_leftover(const char *line)
{
	sy_log_write(ending->config.run_dir, ending->node, ending->job_id, "%s", line);
}

static void remove_leftovers(const struct sy_job_end *job, const struct sy_job_state *state)
{
	struct sy_command_job command = sy_make_command_job(job);
	const json_t *user = json_object_get(state->json, "user_id");

	ending = job;
	sy_leftovers_remove(&command.program, job->job_id,
			    json_is_integer(user) ? (uid_t)json_integer_value(user)
						  : SY_LEFTOVERS_OF_ANYBODY,
			    log_leftover);
}

char *sy_job_end(const struct sy_job_end *job)
{
	cleanup_job_state struct sy_job_state state = SY_JOB_STATE_NONE;
	char totals[4096] = "";
	struct sy_error err;
	struct sy_report report = {
	    .record_dir = job->config.record_dir, .job_id = job->job_id, .node = job->node};

	if (sy_job_state_open(&state, job->config.run_dir, job->node, job->job_id, false,
			      PATIENCE_MS, &err) < 0)
		sy_log_write(job->config.run_dir, job->node, job->job_id, "%s", err.text);
	undo_conditions(job, "job");
	report.sampled = end_sampler(job, state.json ? sy_job_state_process(&state, "sampler") : 0,
				     "end", totals, sizeof(totals));
	report.totals = totals;
	report.begin_unix_s = json_number_value(json_object_get(state.json, "begin_unix_s"));
	report.earlier = json_object_get(state.json, "earlier_starts");
	remove_leftovers(job, &state);
	sy_job_sweep_leftovers(job);
	sy_job_state_remove(&state);
	return report_line(&report);
}

void sy_job_abandon(const struct sy_job_end *job, struct sy_job_state *state, const char *reason)
{
	char totals[4096];

	sy_log_write(job->config.run_dir, job->node, job->job_id, "%s: ended here", reason);
	undo_conditions(job, "next job");
	(void)end_sampler(job, sy_job_state_process(state, "sampler"), "lost", totals,
			  sizeof(totals));
	(void)json_object_clear(state->json);
}

void sy_job_give_up(const struct sy_job_end *job, struct sy_job_state *state)
{
	char totals[4096];

	undo_conditions(job, "job");
	(void)end_sampler(job, sy_job_state_process(state, "sampler"), "end", totals,
			  sizeof(totals));
	sy_job_state_remove(state);
}

void sy_job_sweep_leftovers(const struct sy_job_end *job)
{
	struct sy_command_job command = sy_make_command_job(job);
	struct sy_error err;

	if (sy_conditions_undo_stale(&command, "next job", &err) < 0)
		sy_log_write(job->config.run_dir, job->node, "-",
			     "network conditions of dead jobs not undone: %s", err.text);
	sy_remove_stale_sockets(job->config.run_dir, job->node);
	sy_finish_records(&command.program, job->node);
	sy_leftovers_sweep(&command.program);
}
