/* steelyard-node job attach. */
#include "job/node_log.h"
#include "job/samplers.h"
#include "netem/spec/values.h"
#include "program/commands.h"
#include "program/options.h"

#include <stdint.h>

#define COUNTED_MS 1500 /* pbs_attach waits so long */

static const char help[] =
    "usage: steelyard-node job attach --job-id ID --node NAME --pid PID [OPTIONS]\n"
    "\n"
    "A process that pbs_attach brings is the job's from now on, with what it starts: the kernel\n"
    "counts it, or the record says that nobody does. Exit code 0.\n"
    "\n"
    "  --pid PID             the process\n" SY_JOB_OPTIONS_HELP;

struct arguments {
	struct sy_job_options options;
	int64_t pid;
};

enum { PID = 256 };

static const struct option table[] = {
    {"pid", required_argument, NULL, PID},
    SY_JOB_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;

	if (option == PID)
		return sy_parse_count(optarg, 1, INT32_MAX, &arguments->pid, err);
	return sy_job_options_parse(&arguments->options, option, optarg, err);
}

/* When the sampler has answered, the process may continue. */
static void announce_process(const struct arguments *arguments)
{
	const struct sy_job_options *options = &arguments->options;
	const char *run_dir = options->config.run_dir;
	static struct sy_message_queue queue;
	struct sockaddr_un control;

	if (!sy_control_address(&control, run_dir, options->node, options->job_id) ||
	    !sy_queue_open(&queue, &control))
		return; /* there is no record that could lack it */
	sy_queue_send(&queue, "attach %d", (int)arguments->pid);
	if (!sy_queue_await_answer(&queue, COUNTED_MS))
		sy_log_write(run_dir, options->node, options->job_id,
			     "the sampler did not answer when pbs_attach brought process %d",
			     (int)arguments->pid);
	sy_queue_close(&queue);
}

int sy_job_attach_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job attach", help, table, parse_option};
	static struct arguments arguments;
	int code = sy_command_read(&line, argc, argv, &arguments);

	if (code >= 0)
		return code;
	if (optind < argc || !arguments.options.job_id || !arguments.options.node || !arguments.pid)
		return sy_command_usage(help);
	sy_job_options_resolve(&arguments.options);
	announce_process(&arguments);
	return SY_EXIT_DONE;
}
