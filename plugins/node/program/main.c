/* steelyard-node: what is this node, and what did this job use on it? */
#include "base/descriptors.h"
#include "base/json_document.h"
#include "counters/child_processes.h"
#include "program/commands.h"
#include "program/options.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

/* Commands that share their first word or words. */
struct group {
	const char *name, *about; /* "steelyard-node job"; what all of them are for */
	const char *what;	  /* "COMMAND": what its words are called */
	int width;		  /* of their column in the help */
	const struct command *commands;
	size_t count;
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int print_usage(const struct group *group, FILE *out, int code)
{
	(void)fprintf(out, "usage: %s %s [OPTIONS]\n\n%s", group->name, group->what, group->about);
	for (size_t i = 0; i < group->count; i++)
		(void)fprintf(out, "  %-*s %s\n", group->width, group->commands[i].name,
			      group->commands[i].help);
	(void)fprintf(out, "\n'%s %s --help' lists its options.\n", group->name, group->what);
	return code;
}

static int run_command(const struct group *group, int argc, char **argv)
{
	if (argc < 2)
		return print_usage(group, stderr, SY_EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_usage(group, stdout, SY_EXIT_DONE);
	for (size_t i = 0; i < group->count; i++)
		if (!strcmp(argv[1], group->commands[i].name))
			return group->commands[i].run(argc - 1, argv + 1);
	(void)fprintf(stderr, "%s: unknown command '%s'\n", group->name, argv[1]);
	return print_usage(group, stderr, SY_EXIT_USAGE);
}

static int run_job_command(int argc, char **argv)
{
	static const struct command commands[] = {
	    {"begin", sy_job_begin_command, "a job begins on this node: sampler and conditions"},
	    {"attach", sy_job_attach_command, "a process of others' is the job's from now on"},
	    {"end", sy_job_end_command, "it ends: conditions undone, its totals printed"},
	    {"sweep", sy_job_sweep_command, "undo and finish what jobs that are gone have left"},
	    {"check", sy_job_check_command,
	     "whether a user's request will do, before it is queued"},
	    {"encode", sy_job_encode_command,
	     "a user's wishes as one word that any scheduler carries"},
	};
	static const struct group group = {"steelyard-node job", "", "VERB", 7, commands,
					   COUNT(commands)};

	/* pbs_mom's 077 would hide records from their owners; root's own files have a mode each. */
	(void)umask(022);
	return run_command(&group, argc, argv);
}

static int run_netem_command(int argc, char **argv)
{
	static const struct command commands[] = {
	    {"parse", sy_netem_parse_command, "what a specification means"},
	    {"check", sy_netem_check_command, "whether the policy of this machine allows it"},
	    {"sites", sy_netem_sites_command, "what a file of sites asks of this node"},
	    {"apply", sy_netem_apply_command, "put a condition in place and verify it (root)"},
	    {"finish", sy_netem_finish_command, "a job's end: measure once more and undo it"},
	    {"show", sy_netem_show_command, "whose conditions are on this node"},
	    {"clear", sy_netem_clear_command, "undo by hand"},
	    {"reap", sy_netem_reap_command, "undo those whose owner is gone"},
	};
	static const struct group group = {
	    "steelyard-node netem",
	    "Network conditions on this node (docs/netem.md).\n\nverbs:\n",
	    "VERB",
	    7,
	    commands,
	    COUNT(commands)};

	return run_command(&group, argc, argv);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
	    {"probe", sy_cmd_probe, "what this node is, as one JSON document"},
	    {"doctor", sy_cmd_doctor,
	     "is everything in place on this node, and if not, what to do"},
	    {"sample", sy_cmd_sample, "measure a command, or the processes of a job"},
	    {"record", sy_cmd_record, "make the record of a job from its samples"},
	    {"send", sy_cmd_send, "send a message to a running sampler"},
	    {"netem", run_netem_command, "network conditions: parse, check, apply, undo"},
	    {"cache", sy_cmd_cache, "drop page cache, dentries, inodes and CVMFS' cache"},
	    {"job", run_job_command, "what a scheduler's prologue, epilogue or hook hands over to"},
	};
	static const struct group group = {
	    "steelyard-node", "What this node is, and what a job used on it.\n\ncommands:\n",
	    "COMMAND",	      8,
	    commands,	      COUNT(commands)};

	sy_open_streams();
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		(void)printf("steelyard-node %s\n", SY_VERSION);
		return SY_EXIT_DONE;
	}
	sy_default_sigchld();
	sy_json_watch_memory();
	return run_command(&group, argc, argv);
}
