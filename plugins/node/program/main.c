/* steelyard-node: what is this node, and what did this job use on it? */
#include "base/document.h"
#include "program/command_line.h"
#include "program/commands.h"

#include <stdio.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
    {"probe", sy_cmd_probe, "what this node is, as one JSON document"},
    {"doctor", sy_cmd_doctor, "is everything in place on this node, and if not, what to do"},
    {"sample", sy_cmd_sample, "weigh a command, or the processes of a job"},
    {"record", sy_cmd_record, "make the record of a job from its samples"},
    {"send", sy_cmd_send, "send a message to a running sampler"},
    {"netem", sy_cmd_netem, "network conditions: parse, check, apply, undo"},
    {"cache", sy_cmd_cache, "drop page cache, dentries, inodes and CVMFS' cache"},
    {"job", sy_cmd_job, "what a scheduler's prologue, epilogue or hook hands over to"},
};

static void usage(FILE *out)
{
	(void)fprintf(out, "usage: steelyard-node COMMAND [OPTIONS]\n\n"
			   "What this node is, and what a job used on it.\n\ncommands:\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		(void)fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	(void)fprintf(out, "\n'steelyard-node COMMAND --help' tells a command's options.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return SY_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return SY_EXIT_DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		(void)printf("steelyard-node %s\n", SY_VERSION);
		return SY_EXIT_DONE;
	}
	sy_json_watch_memory();
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	(void)fprintf(stderr, "steelyard-node: unknown command '%s'\n", argv[1]);
	usage(stderr);
	return SY_EXIT_USAGE;
}
