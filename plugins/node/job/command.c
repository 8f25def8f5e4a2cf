#include "job/command.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

void sy_command_number(struct sy_command *command, const char *option, unsigned value)
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

void sy_command_states(struct sy_command *command, const struct sy_command_job *job)
{
	sy_option(&command->arguments, "--run-dir", job->program.run_dir);
}

void sy_command_job(struct sy_command *command, const struct sy_command_job *job)
{
	sy_command_states(command, job);
	sy_option(&command->arguments, "--node", job->node);
	sy_option(&command->arguments, "--job-id", job->job_id);
}

void sy_command_asker(struct sy_command *command, const struct sy_command_job *job)
{
	struct sy_arguments *to = &command->arguments;

	sy_option(to, "--policy", job->policy);
	sy_command_number(command, "--uid", job->uid);
	for (size_t i = 0; i < job->group_count && i < SY_GROUPS_MAX; i++)
		sy_command_number(command, "--gid", job->groups[i]);
	if (job->partition && job->partition[0])
		sy_option(to, "--partition", job->partition);
	sy_option(to, "--exclusive", job->whole_host ? "yes" : "no");
}

int sy_command_limit_ms(int64_t until_ms, int limit_ms)
{
	int64_t left_ms = until_ms ? until_ms - sy_now_ms(CLOCK_MONOTONIC) : limit_ms;

	if (left_ms < 0)
		return 0;
	return left_ms < limit_ms ? (int)left_ms : limit_ms;
}

/* One that has no time is not begun: it would go on alone. */
static int ask(const struct sy_command *command, int limit_ms, struct sy_answer *answer,
	       struct sy_error *err)
{
	int left_ms = sy_command_limit_ms(command->until_ms, limit_ms);

	if (left_ms == 0)
		return sy_fail(err, "no time is left: what was asked for before took too long");
	return sy_ask(&command->arguments, left_ms, answer, err);
}

int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err)
{
	struct sy_answer answer = {.out = out, .out_size = size};

	if (ask(command, limit_ms, &answer, err) < 0)
		return -1;
	if (out[0])
		return 0;
	return sy_fail(err, "%s",
		       answer.said[0] ? answer.said : "steelyard-node ended without a word");
}

int sy_command_tell(const struct sy_command *command, int limit_ms, struct sy_error *err)
{
	char out[64];
	struct sy_answer answer = {.out = out, .out_size = sizeof(out)};

	if (ask(command, limit_ms, &answer, err) < 0)
		return -1;
	return answer.said[0] ? sy_fail(err, "%s", answer.said) : 0;
}
