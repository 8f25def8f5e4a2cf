/* steelyard-node probe: what this node is, as one JSON document. */
#include "base/file.h"
#include "base/json_document.h"
#include "meters/idle_power_setting.h"
#include "probe/probe.h"
#include "program/commands.h"
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: steelyard-node probe [--root DIR] [--pretty] [--quick]\n"
    "       steelyard-node probe --idle-power [--node NAME] [--root DIR]\n"
    "\n"
    "Prints what this node is, as one JSON document (docs/formats.md, part 3).\n"
    "\n"
    "  --root DIR    read a recorded tree instead of / (docs/probe.md says how to record one)\n"
    "  --pretty      indented, for people\n"
    "  --quick       do not ask systemd-detect-virt too\n"
    "  --idle-power  only the watts that " SY_NODE_CONF " says of this node; exit code 3\n"
    "                where it says none, 2 with file and line where it is at fault\n"
    "  --node NAME   the node's name as its scheduler has it (this machine's)\n";

static int print(json_t *document, bool pretty)
{
	size_t flags = JSON_ENSURE_ASCII | (pretty ? JSON_INDENT(2) : JSON_COMPACT);
	cleanup_free char *text = sy_json_dump(document, flags);
	int failed = !text || puts(text) == EOF || fflush(stdout);

	json_decref(document);
	if (failed)
		perror("steelyard-node probe: cannot write to stdout");
	return failed ? SY_EXIT_BUG : SY_EXIT_DONE;
}

static int probe(const char *dir, bool pretty, bool quick)
{
	struct sy_error err = {{0}};
	cleanup_close int root = sy_root_open(dir, &err);
	struct sy_probe_options options = {.root = root, .run_programs = !quick};
	json_t *document;

	if (root < 0) {
		(void)fprintf(stderr, "steelyard-node probe: %s\n", err.text);
		return SY_EXIT_USAGE;
	}
	document = sy_probe(&options);
	if (!document) {
		(void)fprintf(stderr, "steelyard-node probe: out of memory or descriptors\n");
		return SY_EXIT_MISSING;
	}
	return print(document, pretty);
}

static int idle_power(const char *dir, const char *node)
{
	struct sy_error err = {{0}};
	cleanup_close int root = sy_root_open(dir, &err);
	char own[256] = "";
	double watts;
	int result = SY_IDLE_POWER_FAULT;

	(void)gethostname(own, sizeof(own) - 1);
	own[strcspn(own, ".")] = '\0'; /* as schedulers name nodes */
	if (root >= 0)
		result = sy_idle_power_read(root, node ? node : own, &watts, &err);
	if (result == 0)
		return printf("%g\n", watts) < 0 ? SY_EXIT_BUG : SY_EXIT_DONE;
	(void)fprintf(stderr, "steelyard-node probe: %s\n", err.text);
	return result == SY_IDLE_POWER_FAULT ? SY_EXIT_USAGE : SY_EXIT_MISSING;
}

int sy_cmd_probe(int argc, char **argv)
{
	static const struct option table[] = {
	    {"root", required_argument, NULL, 'r'},
	    {"pretty", no_argument, NULL, 'p'},
	    {"quick", no_argument, NULL, 'q'},
	    {"idle-power", no_argument, NULL, 'i'},
	    {"node", required_argument, NULL, 'n'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	bool pretty = false, quick = false, idle = false;
	const char *dir = "/", *name = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (option == 'r')
			dir = optarg;
		else if (option == 'p')
			pretty = true;
		else if (option == 'q')
			quick = true;
		else if (option == 'i')
			idle = true;
		else if (option == 'n')
			name = optarg;
		else if (option == 'h')
			return sy_command_help(help);
		else
			return sy_command_usage(help);
	}
	if (optind < argc) {
		(void)fprintf(stderr, "steelyard-node probe: unexpected argument '%s'\n\n%s",
			      argv[optind], help);
		return SY_EXIT_USAGE;
	}
	return idle ? idle_power(dir, name) : probe(dir, pretty, quick);
}
