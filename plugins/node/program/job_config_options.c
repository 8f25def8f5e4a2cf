#include "program/job_config_options.h"

#include "base/file.h"

#include <unistd.h>

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

int sy_job_options_resolve(struct sy_job_options *options, struct sy_error *err)
{
	int result;

	sy_job_config_init(&options->config);
	result = sy_job_config_read(&options->config, options->file ? options->file : SY_JOB_CONFIG,
				    options->file != NULL, err);
	for (int i = 0; i < options->sets; i++)
		(void)sy_job_config_set(&options->config, options->set[i][0], options->set[i][1],
					NULL);
	return result;
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
