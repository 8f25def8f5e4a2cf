/* steelyard-node job end, job sweep. */
#include "job/job.h"
#include "program/commands.h"
#include "program/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_MAX 4096

static const char end_help[] =
    "usage: steelyard-node job end --job-id ID --node NAME [OPTIONS]\n"
    "\n"
    "A job ends on this node: undoes its conditions, lets its sampler end, and prints its totals "
    "as\n"
    "one line of JSON (docs/formats.md part 5). Also when it never began here. Exit code 0.\n"
    "\n"
    "  --exit-status N       as the scheduler says it, for the record\n"
    "  --exclusive yes|no    if the scheduler reports it only now\n" SY_JOB_OPTIONS_HELP;

static const char sweep_help[] =
    "usage: steelyard-node job sweep --node NAME [OPTIONS]\n"
    "\n"
    "Undoes and finishes what jobs have left that are gone: those whose sampler and processes are\n"
    "no more, or whose begin was killed. Exit code 0.\n"
    "\n"
    "  --alive ID            a job that the scheduler has on this node; repeatable\n"
    "  --only-alive          these are all: others without a process are ended, "
    "too\n" SY_JOB_OPTIONS_HELP;

struct arguments {
	struct sy_job_options options;
	const char *exit_status;
	bool exclusive;
	const char *alive[ALIVE_MAX];
	int alive_count;
	bool only_alive;
};

enum { EXIT_STATUS = 256, EXCLUSIVE, ALIVE, ONLY_ALIVE };

static const struct option end_table[] = {
    {"exit-status", required_argument, NULL, EXIT_STATUS},
    {"exclusive", required_argument, NULL, EXCLUSIVE},
    SY_JOB_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const struct option sweep_table[] = {
    {"alive", required_argument, NULL, ALIVE},
    {"only-alive", no_argument, NULL, ONLY_ALIVE},
    SY_JOB_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;

	switch (option) {
	case EXIT_STATUS:
		arguments->exit_status = optarg;
		return 0;
	case EXCLUSIVE:
		arguments->exclusive = !strcmp(optarg, "yes");
		return arguments->exclusive || !strcmp(optarg, "no")
			   ? 0
			   : sy_fail(err, "expected yes or no");
	case ALIVE:
		if (arguments->alive_count == ALIVE_MAX)
			return sy_fail(err, "expected at most %d of them", ALIVE_MAX);
		arguments->alive[arguments->alive_count++] = optarg;
		return 0;
	case ONLY_ALIVE:
		arguments->only_alive = true;
		return 0;
	default:
		return sy_job_options_parse(&arguments->options, option, optarg, err);
	}
}

static struct sy_job_end job_of(struct arguments *arguments)
{
	struct sy_job_options *options = &arguments->options;

	sy_job_options_resolve(options);
	return (struct sy_job_end){.config = options->config,
				   .program = sy_job_options_program(options),
				   .job_id = options->job_id ? options->job_id : "-",
				   .node = options->node,
				   .exit_status = arguments->exit_status,
				   .exclusive = arguments->exclusive};
}

int sy_job_end_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job end", end_help, end_table, parse_option};
	static struct arguments arguments;
	int code = sy_command_read(&line, argc, argv, &arguments);
	struct sy_job_end job;
	char *text;

	if (code >= 0)
		return code;
	if (optind < argc || !arguments.options.job_id || !arguments.options.node)
		return sy_command_usage(end_help);
	job = job_of(&arguments);
	text = sy_job_end(&job);
	if (text)
		(void)puts(text);
	free(text);
	return SY_EXIT_DONE;
}

int sy_job_sweep_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job sweep", sweep_help, sweep_table,
						    parse_option};
	static struct arguments arguments;
	int code = sy_command_read(&line, argc, argv, &arguments);
	struct sy_job_sweep sweep;

	if (code >= 0)
		return code;
	if (optind < argc || arguments.options.job_id || !arguments.options.node)
		return sy_command_usage(sweep_help);
	sweep = (struct sy_job_sweep){.job = job_of(&arguments),
				      .knows_alive = arguments.only_alive,
				      .alive = arguments.alive,
				      .alive_count = arguments.alive_count};
	sy_job_sweep(&sweep);
	return SY_EXIT_DONE;
}
