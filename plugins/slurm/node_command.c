#include "node_command.h"

#include <stdio.h>
#include <string.h>

void sy_command_number(struct sy_command *command, const char *option, unsigned value)
{
	char *text = command->number[command->numbers++];

	(void)snprintf(text, sizeof(command->number[0]), "%u", value);
	sy_option(&command->arguments, option, text);
}

void sy_command_begin(struct sy_command *command, const struct sy_config *config, const char *group,
		      const char *verb)
{
	command->arguments.count = command->numbers = 0;
	sy_argument(&command->arguments, config->node_program);
	sy_argument(&command->arguments, group);
	sy_argument(&command->arguments, verb);
}

void sy_command_states(struct sy_command *command, const struct sy_config *config)
{
	sy_option(&command->arguments, "--run-dir", config->run_dir);
}

void sy_command_job(struct sy_command *command, const struct sy_config *config,
		    const struct sy_step *step)
{
	sy_command_states(command, config);
	sy_option(&command->arguments, "--node", step->node);
	sy_command_number(command, "--job-id", step->job_id);
}

void sy_command_asker(struct sy_command *command, const struct sy_config *config,
		      const struct sy_step *step, const struct sy_job_facts *facts)
{
	struct sy_arguments *to = &command->arguments;

	sy_option(to, "--policy", config->netem_policy);
	sy_command_number(command, "--uid", step->uid);
	for (size_t i = 0; i < facts->group_count && i < SY_GROUPS_MAX; i++)
		sy_command_number(command, "--gid", facts->groups[i]);
	if (facts->partition[0])
		sy_option(to, "--partition", facts->partition);
	sy_option(to, "--exclusive", facts->whole_host ? "yes" : "no");
}

int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err)
{
	struct sy_answer answer = {.out = out, .out_size = size};

	if (sy_ask(&command->arguments, limit_ms, &answer, err) < 0)
		return -1;
	if (out[0])
		return 0;
	return sy_fail(err, "%s",
		       answer.said[0] ? answer.said : "steelyard-node ended without a word");
}

void sy_command_tell(const struct sy_command *command, int limit_ms, const char *what)
{
	char out[64];
	struct sy_answer answer = {.out = out, .out_size = sizeof(out)};
	struct sy_error err;

	if (sy_ask(&command->arguments, limit_ms, &answer, &err) < 0)
		slurm_error("steelyard: %s: %s", what, err.text);
	else if (answer.said[0])
		slurm_error("steelyard: %s: %s", what, answer.said);
}
