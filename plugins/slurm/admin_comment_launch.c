#include "admin_comment_launch.h"

#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "conditions.h"
#include "job/comment.h"
#include "job/conditions.h"
#include "job/node_log.h"
#include "options.h"
#include "sampler_launch.h"

#define ANSWER_LIMIT_MS 2000 /* some ms, but on a node or a disk that is too busy */
#define WAIT_MS		500
#define LINE_SIZE	1024

/* The program's input: {"job_id": 7, "batch": true, "own": "{…}"}. */
static char *make_request(const struct sy_step *step, const char *own)
{
	json_t *object = json_pack("{s:I, s:b, s:s}", "job_id", (json_int_t)step->job_id, "batch",
				   step->batch_step, "own", own);
	char *text = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	return text;
}

/* The read end of a pipe that contains all of `text` (less than the pipe's 64 KB); -1: none. */
static int open_input(const char *text)
{
	int ends[2];

	if (!text || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	if (sy_write_all(ends[1], text, strlen(text)) < 0) {
		(void)close(ends[0]);
		ends[0] = -1;
	}
	(void)close(ends[1]);
	return ends[0];
}

/* Not slurm_error: that is written into the job's own output, too. */
static void log_line(const char *line)
{
	static const char info[] = "info: ";
	const char *sentence = strstr(line, ": ");

	if (strncmp(line, info, sizeof(info) - 1) == 0)
		slurm_info("steelyard: %s", line + sizeof(info) - 1);
	else
		slurm_verbose("steelyard: %s", sentence ? sentence + 2 : line);
}

/* Beside the job's tasks, none of which it is. */
static int start(const struct sy_config *config, const struct sy_step *step, int in, int out,
		 struct sy_error *err)
{
	char path[SY_PATH_SIZE];
	struct sy_node_program program = sy_slurm_program(config);
	cleanup_close int complaints = sy_log_open(config->node.run_dir, step->node);
	struct sy_arguments arguments;

	sy_slurm_accounting_program(config, path);
	sy_begin_arguments(&arguments, &program);
	arguments.argv[0] = path;
	arguments.unseen = true;
	sy_argument(&arguments, "--job-end");
	if (access(path, X_OK) != 0)
		return sy_fail_errno(err, errno, "cannot run %s", path);
	return sy_spawn(&arguments, (int[SY_SPAWN_FDS]){in, out, complaints, -1}, NULL, err);
}

static void write_comment(const struct sy_config *config, const struct sy_step *step,
			  const char *own)
{
	cleanup_free char *request = make_request(step, own);
	cleanup_close int in = open_input(request);
	char line[LINE_SIZE] = "";
	struct sy_pipe answer = {.text = line, .size = sizeof(line)};
	struct sy_error err;
	int output_pipe[2], rc;

	if (in < 0 || pipe2(output_pipe, O_CLOEXEC) != 0)
		return;
	rc = start(config, step, in, output_pipe[1], &err);
	(void)close(output_pipe[1]);
	answer.fd = output_pipe[0];
	(void)sy_read_pipes(&answer, 1, rc < 0 ? 0 : WAIT_MS);
	line[strcspn(line, "\n")] = '\0';
	if (rc < 0)
		slurm_info("steelyard: AdminComment of job %u: not written: %s", step->job_id,
			   err.text);
	else if (line[0])
		log_line(line);
}

bool sy_admin_comment_is_due(const struct sy_step *step)
{
	return step->batch_step || (!step->batch_runs && step->node_index == 0);
}

void sy_admin_comment_set(spank_t spank, const struct sy_config *config, const struct sy_step *step,
			  struct sy_message_queue *queue)
{
	char answer[SY_MESSAGE_MAX];
	struct sy_command_job job = sy_slurm_command_job(config, step, NULL);
	struct sy_totals totals = {0};
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .nodes = sy_step_count_nodes(spank, step),
				     .netem = sy_conditions_netem(),
				     .refused = sy_conditions_refusal(),
				     .so_far = !step->batch_step};
	cleanup_free char *text = NULL;

	/* The last sample would be some of the totals, and nothing would say so. */
	if (sy_queue_request_totals(queue, answer, sizeof(answer), ANSWER_LIMIT_MS) > 0 &&
	    sy_totals_from_json(&totals, answer)) {
		comment.totals = &totals;
		sy_node_kind_from_record(&comment.kind, answer);
	}
	comment.netem_valid = sy_conditions_are_valid(&job, totals.other_networks);
	text = sy_comment_short(&comment);
	if (text)
		write_comment(config, step, text);
}
