#include "job/node_command.h"

#include "base/clock.h"
#include "base/file.h"
#include "job/node_log.h"
#include "record/unfinished_records.h"

#include <stdio.h>
#include <unistd.h>

void sy_begin_arguments(struct sy_arguments *to, const struct sy_node_program *program)
{
	to->count = 0;
	to->variable = program->variable;
	to->egress = program->egress;
	to->unseen = false;
	sy_argument(to, program->path);
}

void sy_finish_records(const struct sy_node_program *program, const char *node)
{
	struct sy_arguments arguments;
	cleanup_close int complaints = -1;

	if (!sy_unfinished_exist(program->run_dir))
		return;
	complaints = sy_log_open(program->run_dir, node);
	sy_begin_arguments(&arguments, program);
	sy_argument(&arguments, "record");
	sy_option(&arguments, "--unfinished", program->run_dir);
	(void)sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, complaints, -1}, NULL, NULL);
}

void sy_sweep_bpf(const struct sy_node_program *program, const char *bpf)
{
	struct sy_arguments arguments;

	if (access(bpf, X_OK) < 0)
		return;
	sy_begin_arguments(&arguments, program);
	arguments.argv[0] = (char *)bpf;
	sy_argument(&arguments, "sweep");
	(void)sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, -1, -1}, NULL, NULL);
}

void sy_command_add_number(struct sy_command *command, const char *option, unsigned value)
{
	char *text = command->number[command->numbers++];

	(void)snprintf(text, sizeof(command->number[0]), "%u", value);
	sy_option(&command->arguments, option, text);
}

void sy_command_begin(struct sy_command *command, const struct sy_command_job *job,
		      const char *group, const char *verb)
{
	command->numbers = 0;
	command->until_ms = job->until_ms;
	sy_begin_arguments(&command->arguments, &job->program);
	sy_argument(&command->arguments, group);
	sy_argument(&command->arguments, verb);
}

void sy_command_add_run_dir(struct sy_command *command, const struct sy_command_job *job)
{
	sy_option(&command->arguments, "--run-dir", job->program.run_dir);
}

void sy_command_job(struct sy_command *command, const struct sy_command_job *job)
{
	sy_command_add_run_dir(command, job);
	sy_option(&command->arguments, "--node", job->node);
	sy_option(&command->arguments, "--job-id", job->job_id);
}

void sy_command_add_asker(struct sy_command *command, const struct sy_command_job *job)
{
	struct sy_arguments *to = &command->arguments;

	sy_option(to, "--policy", job->policy);
	sy_command_add_number(command, "--uid", job->uid);
	for (size_t i = 0; i < job->group_count && i < SY_GROUPS_MAX; i++)
		sy_command_add_number(command, "--gid", job->groups[i]);
	if (job->partition && job->partition[0])
		sy_option(to, "--partition", job->partition);
	sy_option(to, "--exclusive", job->has_whole_host ? "yes" : "no");
}

int sy_command_limit_ms(int64_t until_ms, int limit_ms)
{
	int64_t remaining_ms = until_ms ? until_ms - sy_now_ms(CLOCK_MONOTONIC) : limit_ms;

	if (remaining_ms < 0)
		return 0;
	return remaining_ms < limit_ms ? (int)remaining_ms : limit_ms;
}

/* Without time left the command is not started: nobody would wait for it. */
static int run_within_limit(const struct sy_command *command, int limit_ms,
			    struct sy_spawn_output *answer, struct sy_error *err)
{
	int remaining_ms = sy_command_limit_ms(command->until_ms, limit_ms);

	if (remaining_ms == 0)
		return sy_fail(err, "no time is left: what was asked for before took too long");
	return sy_spawn_and_read(&command->arguments, remaining_ms, answer, err);
}

int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err)
{
	struct sy_spawn_output answer = {.out = out, .out_size = size};

	if (run_within_limit(command, limit_ms, &answer, err) < 0)
		return -1;
	if (out[0])
		return 0;
	return sy_fail(err, "%s",
		       answer.message[0] ? answer.message : "steelyard-node ended without a word");
}

int sy_command_run_silent(const struct sy_command *command, int limit_ms, struct sy_error *err)
{
	char out[64];
	struct sy_spawn_output answer = {.out = out, .out_size = sizeof(out)};

	if (run_within_limit(command, limit_ms, &answer, err) < 0)
		return -1;
	return answer.message[0] ? sy_fail(err, "%s", answer.message) : 0;
}
