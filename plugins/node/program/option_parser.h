/* What the commands of steelyard-node have in common: exit codes, options, answers. */
#ifndef STEELYARD_PROGRAM_OPTION_PARSER_H
#define STEELYARD_PROGRAM_OPTION_PARSER_H

#include <getopt.h>
#include <jansson.h>

#include "base/error.h"

/* Exit codes, the same as those of the command `steelyard`. */
enum sy_exit {
	SY_EXIT_DONE = 0,
	SY_EXIT_BUG = 1,
	SY_EXIT_USAGE = 2,
	SY_EXIT_MISSING = 3,
	SY_EXIT_CONDITION = 4,
};

/* What a command reads its options with. */
struct sy_command_line {
	const char *command; /* as in its complaints: "netem apply" */
	const char *help;
	const struct option *table; /* --help is 'h' */
	/* Take one option: negative, with what was expected, when `optarg` is none of it. */
	int (*take)(int option, void *arguments, struct sy_error *err);
};

/* A command's help, which the user has requested, or needs: the exit code. */
int sy_command_help(const char *help);
int sy_command_usage(const char *help);

/* Parse all options into `context`: -1 when the command may continue, else its exit code. */
int sy_command_read(const struct sy_command_line *line, int argc, char **argv, void *arguments);

/* Print an object, whose reference is taken, as one line: the exit code. */
int sy_command_print(const char *command, json_t *object);

#endif
