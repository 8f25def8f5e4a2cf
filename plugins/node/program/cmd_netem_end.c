/* steelyard-node netem finish, reap, clear: undoing. */
#include "netem/netem.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/unfinished_records.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char finish_help[] =
    "usage: steelyard-node netem finish --run-dir DIR --node NAME --job-id JOB [--by WHO]\n"
    "\n"
    "The job's end: measures once more, undoes its condition and leaves what was found for the\n"
    "record. Nothing there: nothing to do, exit code 0. Exit code 4: it could not be undone.\n"
    "\n"
    "  --by WHO  who does it, for the record: job (default), sampler, next job, slurmd, hand\n";

static const char reap_help[] =
    "usage: steelyard-node netem reap --run-dir DIR [--by WHO]\n"
    "\n"
    "Undoes the conditions whose owner is gone. Exit code 4: one of them could not be undone.\n"
    "\n"
    "  --by WHO  who does it: slurmd (default), sampler, next job, job, hand\n";

static const char clear_help[] =
    "usage: steelyard-node netem clear --run-dir DIR (--node NAME --job-id JOB | --all)\n"
    "\n"
    "Undoes a condition by hand, whoever has it; --all: every one on this node, also what no\n"
    "state file tells of. Exit code 4: something could not be undone.\n";

struct arguments {
	const char *run_dir, *node, *job_id, *by;
	bool all;
};

/* -1: continue; else the exit code. */
static int parse_arguments(int argc, char **argv, const char *help, struct arguments *arguments)
{
	static const struct option table[] = {
	    {"run-dir", required_argument, NULL, 'r'},
	    {"node", required_argument, NULL, 'n'},
	    {"job-id", required_argument, NULL, 'j'},
	    {"by", required_argument, NULL, 'b'},
	    {"all", no_argument, NULL, 'a'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (option == 'r')
			arguments->run_dir = optarg;
		else if (option == 'n')
			arguments->node = optarg;
		else if (option == 'j')
			arguments->job_id = optarg;
		else if (option == 'b')
			arguments->by = optarg;
		else if (option == 'a')
			arguments->all = true;
		else if (option == 'h')
			return sy_command_help(help);
		else
			return sy_command_usage(help);
	}
	if (optind == argc && arguments->run_dir)
		return -1;
	return sy_command_usage(help);
}

static bool is_known_actor(const char *by)
{
	static const char *const known[] = {"job", "sampler", "next job", "slurmd", "hand"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(by, known[i]))
			return true;
	return false;
}

static int report_result(const char *verb, int result, const struct sy_error *err)
{
	if (result >= 0)
		return SY_EXIT_DONE;
	(void)fprintf(stderr, "steelyard-node netem %s: %s\n", verb, err->text);
	return SY_EXIT_CONDITION;
}

int sy_netem_finish_command(int argc, char **argv)
{
	struct arguments arguments = {.by = "job"};
	struct sy_error err = {{0}};
	int code = parse_arguments(argc, argv, finish_help, &arguments);

	if (code >= 0)
		return code;
	if (!arguments.node || !arguments.job_id || arguments.all || !is_known_actor(arguments.by))
		return sy_command_usage(finish_help);
	return report_result(argv[0],
			     sy_netem_finish(arguments.run_dir, arguments.node, arguments.job_id,
					     arguments.by, &err),
			     &err);
}

int sy_netem_reap_command(int argc, char **argv)
{
	struct arguments arguments = {.by = "slurmd"};
	struct sy_error err = {{0}};
	int code = parse_arguments(argc, argv, reap_help, &arguments);

	if (code >= 0)
		return code;
	if (arguments.node || arguments.job_id || arguments.all || !is_known_actor(arguments.by))
		return sy_command_usage(reap_help);
	(void)sy_stale_files(arguments.run_dir, true);
	return report_result(argv[0], sy_netem_undo_stale(arguments.run_dir, arguments.by, &err),
			     &err);
}

int sy_netem_clear_command(int argc, char **argv)
{
	struct arguments arguments = {.by = "hand"};
	struct sy_error err = {{0}};
	int code = parse_arguments(argc, argv, clear_help, &arguments);

	if (code >= 0)
		return code;
	if (arguments.all ? arguments.node || arguments.job_id
			  : !arguments.node || !arguments.job_id)
		return sy_command_usage(clear_help);
	return report_result(argv[0],
			     arguments.all ? sy_netem_clear_all(arguments.run_dir, &err)
					   : sy_netem_finish(arguments.run_dir, arguments.node,
							     arguments.job_id, "hand", &err),
			     &err);
}
