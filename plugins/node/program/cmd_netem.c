/* steelyard-node netem: its verbs. */
#include "program/cmd_netem.h"

#include "program/command_line.h"
#include "program/commands.h"

#include <stdio.h>
#include <string.h>

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct verb verbs[] = {
    {"parse", sy_netem_parse_command, "what a specification means"},
    {"check", sy_netem_check_command, "whether the policy of this machine allows it"},
    {"sites", sy_netem_sites_command, "what a file of sites asks of this node"},
    {"apply", sy_netem_apply_command, "put a condition in place and verify it (root)"},
    {"finish", sy_netem_finish_command, "a job's end: measure once more and undo it"},
    {"show", sy_netem_show_command, "whose conditions are on this node"},
    {"clear", sy_netem_clear_command, "undo by hand"},
    {"reap", sy_netem_reap_command, "undo those whose owner is gone"},
};

static int usage(FILE *out, int code)
{
	(void)fprintf(out, "usage: steelyard-node netem VERB [OPTIONS]\n\n"
			   "Network conditions on this node (docs/netem.md).\n\nverbs:\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		(void)fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].help);
	(void)fprintf(out, "\n'steelyard-node netem VERB --help' tells a verb's options.\n");
	return code;
}

int sy_cmd_netem(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, SY_EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return usage(stdout, SY_EXIT_DONE);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	(void)fprintf(stderr, "steelyard-node netem: unknown verb '%s'\n", argv[1]);
	return usage(stderr, SY_EXIT_USAGE);
}
