#include "slurmdb.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "base/file.h"
#include "job/comment.h"
#include "plugins/slurm/slurm_releases.h"

#define LIMIT_S	 60 /* of all tries */
#define TRIES	 4
#define SENTENCE 512

enum verdict { WRITTEN, AGAIN, OVER, LEFT };

struct request {
	uint32_t job_id;
	bool batch; /* the batch step ends: nothing of the job comes after it */
	const char *own;
};

/* The whole line of stdout, or of stderr where the plugin has not waited: the file of complaints,
 * which the next job on the node logs. */
static char late[SENTENCE];

__attribute__((noreturn)) static void on_alarm(int number)
{
	(void)number;
	(void)!write(STDERR_FILENO, late, strlen(late));
	_exit(SY_SLURMDB_MISSING);
}

/* For an array's last task Slurm returns all tasks. */
static const job_info_t *find_job(const job_info_msg_t *found, uint32_t job_id)
{
	for (uint32_t i = 0; found && i < found->record_count; i++)
		if (SY_JOB_ID_OF(&found->job_array[i]) == job_id)
			return &found->job_array[i];
	return NULL;
}

static enum verdict read_refusal(char *reason)
{
	int number = errno;

	(void)snprintf(reason, SENTENCE, "%s", slurm_strerror(number));
	return number == ESLURM_ALREADY_DONE || number == ESLURM_JOB_FINISHED ||
		       number == ESLURM_INVALID_JOB_ID
		   ? OVER
		   : AGAIN;
}

static enum verdict put_comment(const struct request *request, const char *present, char *why)
{
	job_desc_msg_t update;
	const char *reason;
	cleanup_free char *text = sy_comment_merge(present, request->own, &reason);

	if (!text) {
		(void)snprintf(why, SENTENCE, "%s", reason);
		return LEFT;
	}
	if (present && strcmp(present, text) == 0)
		return WRITTEN;
	/* A step that has ended meanwhile has written more. */
	if (!request->batch && sy_comment_is_later(present, request->own))
		return WRITTEN;
	slurm_init_job_desc_msg(&update);
	/* By number: a name like "2" would stand for all tasks of array 2. */
	SY_JOB_ID_OF(&update) = request->job_id;
	update.admin_comment = text;
	return slurm_update_job(&update) == SLURM_SUCCESS ? WRITTEN : read_refusal(why);
}

/* A finished job is not queried: slurmctld would log an error. */
static enum verdict try_once(const struct request *request, char *reason)
{
	job_info_msg_t *found = NULL;
	const job_info_t *job;
	enum verdict verdict = OVER;

	if (sy_load_job(&found, request->job_id, SHOW_LOCAL | SHOW_ALL) != SLURM_SUCCESS)
		return read_refusal(reason);
	job = find_job(found, request->job_id);
	if (job && (job->job_state & JOB_STATE_BASE) <= JOB_SUSPENDED)
		verdict = put_comment(request, job->admin_comment, reason);
	slurm_free_job_info_msg(found);
	return verdict;
}

static void print_result(const struct request *request, const char *level, const char *sentence)
{
	char line[SENTENCE + 128];
	int length = snprintf(line, sizeof(line), "%s: AdminComment of job %" PRIu32 ": %s\n",
			      level, request->job_id, sentence);
	const char *plain = line + strlen(level) + 2;

	if (write(STDOUT_FILENO, line, (size_t)length) < 0 && *level == 'i')
		(void)!write(STDERR_FILENO, plain, strlen(plain));
}

static void write_and_report(const struct request *request)
{
	char reason[SENTENCE - 64] = "", sentence[SENTENCE] = "written";
	enum verdict verdict = try_once(request, reason);
	int tries = 1;

	for (unsigned pause_s = 1; verdict == AGAIN && tries < TRIES; tries++, pause_s *= 3) {
		(void)sleep(pause_s);
		verdict = try_once(request, reason);
	}
	if (verdict == LEFT)
		(void)snprintf(sentence, sizeof(sentence), "left as it is: %s", reason);
	else if (verdict == OVER && tries == 1)
		(void)snprintf(sentence, sizeof(sentence), "not written: the job is over");
	else if (verdict != WRITTEN)
		(void)snprintf(sentence, sizeof(sentence),
			       "not written: %s; `steelyard publish` writes it", reason);
	print_result(request,
		     verdict == WRITTEN || (verdict == OVER && tries == 1) ? "verbose" : "info",
		     sentence);
}

int sy_job_end(void)
{
	json_t *line = json_loadf(stdin, 0, NULL);
	const json_t *id = json_object_get(line, "job_id");
	struct request request = {.job_id = (uint32_t)json_integer_value(id),
				  .batch = json_is_true(json_object_get(line, "batch")),
				  .own = json_string_value(json_object_get(line, "own"))};

	if (!json_is_integer(id) || !request.own) {
		(void)fputs("steelyard-slurmdb --job-end: no job is named\n", stderr);
		json_decref(line);
		return SY_SLURMDB_USAGE;
	}
	(void)snprintf(late, sizeof(late),
		       "AdminComment of job %" PRIu32 ": not written: slurmctld does not answer; "
		       "`steelyard publish` writes it\n",
		       request.job_id);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGALRM, on_alarm);
	(void)alarm(LIMIT_S);
	slurm_init(NULL);
	write_and_report(&request);
	json_decref(line);
	return 0;
}
