#include "program/option_parser.h"

#include "base/json_document.h"
#include "base/file.h"

#include <stdio.h>

int sy_command_help(const char *help)
{
	return fputs(help, stdout) == EOF ? SY_EXIT_BUG : SY_EXIT_DONE;
}

int sy_command_usage(const char *help)
{
	return fputs(help, stderr) == EOF ? SY_EXIT_BUG : SY_EXIT_USAGE;
}

int sy_command_read(const struct sy_command_line *line, int argc, char **argv, void *arguments)
{
	struct sy_error err;
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "h", line->table, &index)) != -1) {
		if (option == 'h')
			return sy_command_help(line->help);
		if (option == '?')
			return sy_command_usage(line->help);
		if (line->take(option, arguments, &err) >= 0)
			continue;
		(void)fprintf(stderr, "steelyard-node %s: --%s %.100s: %s\n", line->command,
			      line->table[index].name, optarg, err.text);
		return SY_EXIT_USAGE;
	}
	return -1;
}

int sy_command_print(const char *command, json_t *object)
{
	/* 15 digits: what was written in decimal reads the same. */
	size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15);
	cleanup_free char *text = sy_json_dump(object, flags);
	int failed = !text || puts(text) == EOF || fflush(stdout);

	json_decref(object);
	if (failed)
		(void)fprintf(stderr, "steelyard-node %s: %s\n", command,
			      text ? "cannot write to stdout" : "out of memory");
	return failed ? SY_EXIT_BUG : SY_EXIT_DONE;
}
