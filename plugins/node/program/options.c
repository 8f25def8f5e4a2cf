#include "program/options.h"

#include "base/file.h"
#include "base/json_document.h"
#include "job/node_log.h"
#include "netem/spec/values.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static const char *const keys[] = {"record_dir", "run_dir", "node_program", "netem_policy", "rate",
				   "max_rate",	 "protect", "bpf",	    "root"};

static int parse_file_word(const char **to, const char *text, struct sy_error *err)
{
	if (!sy_is_file_word(text))
		return sy_fail(err, "expected a name without '/', not beginning with '.'");
	*to = text;
	return 1;
}

int sy_job_options_parse(struct sy_job_options *options, int option, const char *text,
			 struct sy_error *err)
{
	struct sy_job_config probe;
	int which = option - SY_JOB_OPTION_FIRST;

	if (which == 0)
		options->file = text;
	else if (which == 1)
		return parse_file_word(&options->job_id, text, err);
	else if (which == 2)
		return parse_file_word(&options->node, text, err);
	if (which < 3)
		return which == 0;
	if (which > 11)
		return 0;
	sy_job_config_init(&probe);
	if (sy_job_config_set(&probe, keys[which - 3], text, err) < 0)
		return -1;
	if (options->sets == 16)
		return sy_fail(err, "more options than 16 of the configuration");
	options->set[options->sets][0] = keys[which - 3];
	options->set[options->sets++][1] = text;
	return 1;
}

void sy_job_options_resolve(struct sy_job_options *options)
{
	struct sy_error err;
	int result;

	sy_job_config_init(&options->config);
	result = sy_job_config_read(&options->config, options->file ? options->file : SY_JOB_CONFIG,
				    options->file != NULL, &err);
	for (int i = 0; i < options->sets; i++)
		(void)sy_job_config_set(&options->config, options->set[i][0], options->set[i][1],
					NULL);
	if (result < 0)
		sy_log_write(options->config.run_dir, options->node,
			     options->job_id ? options->job_id : "-", "%s", err.text);
}

const char *sy_job_options_program(struct sy_job_options *options)
{
	ssize_t length;

	if (options->config.node_program[0])
		return options->config.node_program;
	length = readlink("/proc/self/exe", options->own_path, sizeof(options->own_path) - 1);
	options->own_path[length > 0 ? length : 0] = '\0';
	return options->own_path;
}

void sy_policy_options_init(struct sy_policy_options *options)
{
	options->policy = SY_POLICY_PATH;
	options->no_policy = options->has_requester = false;
	options->requester =
	    (struct sy_requester){.groups = options->groups, .exclusive = SY_NOT_KNOWN};
}

int sy_policy_options_id(const char *text, unsigned *id, struct sy_error *err)
{
	int64_t number;

	/* The last number means "none" to the kernel. */
	if (sy_parse_count(text, 0, UINT32_MAX - 1, &number, err) < 0)
		return -1;
	*id = (unsigned)number;
	return 1;
}

static int parse_group(struct sy_policy_options *options, const char *text, struct sy_error *err)
{
	struct sy_requester *requester = &options->requester;

	options->has_requester = true;
	if (requester->group_count == SY_POLICY_OPTIONS_GROUPS)
		return sy_fail(err, "expected at most %d of them", SY_POLICY_OPTIONS_GROUPS);
	return sy_policy_options_id(text, &options->groups[requester->group_count++], err);
}

static int parse_exclusive(struct sy_policy_options *options, const char *text,
			   struct sy_error *err)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return sy_fail(err, "expected yes or no");
	options->requester.exclusive = *text == 'y' ? SY_YES : SY_NO;
	return 1;
}

int sy_policy_options_parse(struct sy_policy_options *options, int option, const char *text,
			    struct sy_error *err)
{
	switch (option) {
	case 'f':
		options->policy = text;
		return 1;
	case 'n':
		options->no_policy = true;
		return 1;
	case 'p':
		options->requester.partition = text;
		return 1;
	case 'u':
		options->has_requester = true;
		return sy_policy_options_id(text, &options->requester.uid, err);
	case 'g':
		return parse_group(options, text, err);
	case 'x':
		return parse_exclusive(options, text, err);
	default:
		return 0;
	}
}
