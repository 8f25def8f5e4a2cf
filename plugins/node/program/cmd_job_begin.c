/* steelyard-node job begin. */
#include "job/job.h"
#include "job/job_options.h"
#include "job/node_log.h"
#include "netem/spec/values.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/message_grammar.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: steelyard-node job begin --job-id ID --node NAME --owner UID:GID [OPTIONS]\n"
    "\n"
    "A job begins on this node: starts its sampler, which is nobody's child and outlives what the\n"
    "scheduler kills, and puts in place what its user asked for. Called again for a job that goes\n"
    "on, it tells what is new (--session, --cgroup); what an earlier start of the job has left is\n"
    "ended first. Exit code 4: a condition that was asked for cannot be had, stderr says why and\n"
    "nothing is left; else 0, and DIR/NAME.log says what did not go as it should.\n"
    "\n"
    "  --parent PID          the scheduler's daemon, or a process it has forked off: its children\n"
    "                        with the first mark are the job's\n"
    "  --mark NAME=VALUE     what processes of the job have in their environment; repeatable: "
    "those\n"
    "                        behind the first part daemons that share a machine\n"
    "  --session SID         orphans of this session are the job's\n"
    "  --cgroup PATH         the job's, as in /proc/PID/cgroup\n"
    "  --join PID            a process whose children will be the job's: put into the cgroup that\n"
    "                        is made where only the job's traffic is shaped; repeatable\n"
    "  --job FIELD=VALUE     a field of `job` in the record; repeatable\n"
    "  --exclusive yes|no    whether the job has the node for itself\n"
    "  --partition QUEUE     for the policy\n"
    "  --peer HOST           another node of the job: round-trip times are to that one\n"
    "  --restart-count N     another number is another start of the job\n"
    "  --late                the job has run here already: a job that nobody knows gets a record\n"
    "                        that says so, with no condition applied; others are left alone\n"
    "  --refuse TEXT         a condition that was requested is not available on another node of "
    "the\n"
    "                        job: TEXT is the reason\n"
    "  --request TEXT        what the user asked for (steelyard-node job "
    "encode)\n" SY_JOB_OPTIONS_HELP;

struct arguments {
	struct sy_job_options options;
	struct sy_job_begin job;
	const char *request, *refuse;
	bool has_owner;
};

enum {
	OWNER = 256,
	PARENT,
	MARK,
	SESSION,
	CGROUP,
	JOIN,
	JOB,
	EXCLUSIVE,
	PARTITION,
	PEER,
	RESTART,
	REFUSE,
	REQUEST,
	LATE
};

static const struct option table[] = {
    {"owner", required_argument, NULL, OWNER},
    {"parent", required_argument, NULL, PARENT},
    {"mark", required_argument, NULL, MARK},
    {"session", required_argument, NULL, SESSION},
    {"cgroup", required_argument, NULL, CGROUP},
    {"join", required_argument, NULL, JOIN},
    {"job", required_argument, NULL, JOB},
    {"exclusive", required_argument, NULL, EXCLUSIVE},
    {"partition", required_argument, NULL, PARTITION},
    {"peer", required_argument, NULL, PEER},
    {"restart-count", required_argument, NULL, RESTART},
    {"refuse", required_argument, NULL, REFUSE},
    {"request", required_argument, NULL, REQUEST},
    {"late", no_argument, NULL, LATE},
    SY_JOB_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_owner(struct arguments *arguments, char *text, struct sy_error *err)
{
	char *group = strchr(text, ':');

	if (!group)
		return sy_fail(err, "expected UID:GID, as numbers");
	*group = '\0';
	arguments->has_owner = true;
	return sy_policy_options_id(text, &arguments->job.uid, err) < 0 ||
		       sy_policy_options_id(group + 1, &arguments->job.gid, err) < 0
		   ? -1
		   : 0;
}

static int parse_pid(const char *text, pid_t *pid, struct sy_error *err)
{
	int64_t number;

	if (sy_parse_count(text, 1, INT32_MAX, &number, err) < 0)
		return -1;
	*pid = (pid_t)number;
	return 0;
}

static int parse_mark(struct sy_job_begin *job, const char *text, struct sy_error *err)
{
	if (!strchr(text, '='))
		return sy_fail(err, "expected NAME=VALUE");
	if (job->marks == SY_MAX_MARKS)
		return sy_fail(err, "expected at most %d of them", SY_MAX_MARKS);
	job->mark[job->marks++] = text;
	return 0;
}

static int parse_join(struct sy_job_begin *job, const char *text, struct sy_error *err)
{
	if (job->joins == SY_JOB_JOINS)
		return sy_fail(err, "expected at most %d of them", SY_JOB_JOINS);
	return parse_pid(text, &job->join[job->joins++], err);
}

/* A field that the sampler would refuse is left out, so that the job keeps its record. */
static int parse_field(struct sy_job_begin *job, char *text, struct sy_error *err)
{
	char line[SY_MESSAGE_SIZE];
	struct sy_message message;

	(void)snprintf(line, sizeof(line), "job %.4000s", text);
	if (strchr(line, '='))
		*strchr(line, '=') = ' ';
	if (sy_message_parse(line, &message, err) < 0) {
		(void)fprintf(stderr, "steelyard-node job begin: left out: %s\n", err->text);
		return 0;
	}
	if (job->fields == SY_JOB_FIELDS)
		return sy_fail(err, "expected at most %d of them", SY_JOB_FIELDS);
	job->field[job->fields++] = text;
	return 0;
}

static int parse_exclusive(struct sy_job_begin *job, const char *text, struct sy_error *err)
{
	job->exclusive = !strcmp(text, "yes");
	job->shared = !strcmp(text, "no");
	return job->exclusive || job->shared ? 0 : sy_fail(err, "expected yes or no");
}

static int parse_cgroup(struct sy_job_begin *job, const char *text, struct sy_error *err)
{
	char line[SY_MESSAGE_SIZE];
	struct sy_message message;

	(void)snprintf(line, sizeof(line), "cgroup %.2000s", text);
	job->cgroup = text;
	return sy_message_parse(line, &message, err);
}

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;
	struct sy_job_begin *job = &arguments->job;

	switch (option) {
	case OWNER:
		return parse_owner(arguments, optarg, err);
	case PARENT:
		return parse_pid(optarg, &job->parent, err);
	case MARK:
		return parse_mark(job, optarg, err);
	case SESSION:
		return parse_pid(optarg, &job->session, err);
	case CGROUP:
		return parse_cgroup(job, optarg, err);
	case JOIN:
		return parse_join(job, optarg, err);
	case JOB:
		return parse_field(job, optarg, err);
	case EXCLUSIVE:
		return parse_exclusive(job, optarg, err);
	case PARTITION:
		job->partition = optarg;
		return 0;
	case PEER:
		job->peer = optarg;
		return 0;
	case RESTART:
		job->restart_count = optarg;
		return 0;
	case LATE:
		job->late = true;
		return 0;
	case REFUSE:
		arguments->refuse = optarg;
		return 0;
	case REQUEST:
		arguments->request = optarg;
		return 0;
	default:
		return sy_job_options_parse(&arguments->options, option, optarg, err);
	}
}

/* On the node a wrong tag or rate is only noted. A condition that cannot be parsed is stored as
 * a fault, so that the job does not run without it. */
static int parse_user_option(void *context, enum sy_user_option which, const char *text,
			     struct sy_error *err)
{
	struct sy_job_begin *job = context;
	char fault[sizeof(job->user_options.fault)];

	if (sy_user_option_parse(&job->user_options, which, text, job->config.max_rate_hz, err) ==
	    0)
		return 0;
	sy_format_option_fault(fault, sizeof(fault), which, text, err);
	if (sy_user_option_facts[which].condition)
		(void)snprintf(job->user_options.fault, sizeof(job->user_options.fault), "%s",
			       fault);
	else
		sy_log_write(job->config.run_dir, job->node, job->job_id, "%s", fault);
	return 0;
}

static int run(struct arguments *arguments)
{
	struct sy_job_begin *job = &arguments->job;
	struct sy_error err;

	sy_job_options_resolve(&arguments->options);
	job->config = arguments->options.config;
	job->exclusive |= job->config.exclusive && !job->shared;
	job->program = sy_job_options_program(&arguments->options);
	job->job_id = arguments->options.job_id;
	job->node = arguments->options.node;
	if (arguments->request &&
	    sy_request_read(arguments->request, parse_user_option, job, &err) < 0)
		(void)snprintf(job->user_options.fault, sizeof(job->user_options.fault), "%s",
			       err.text);
	if (arguments->refuse)
		(void)snprintf(job->user_options.fault, sizeof(job->user_options.fault), "%s",
			       arguments->refuse);
	sy_tag_cache_option(&job->user_options);
	if (sy_job_begin(job, &err) == 0)
		return SY_EXIT_DONE;
	(void)fprintf(stderr, "steelyard: %s\n", err.text);
	return SY_EXIT_CONDITION;
}

int sy_job_begin_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job begin", help, table, parse_option};
	static struct arguments arguments;
	int code = sy_command_read(&line, argc, argv, &arguments);

	if (code >= 0)
		return code;
	if (optind == argc && arguments.options.job_id && arguments.options.node &&
	    arguments.has_owner)
		return run(&arguments);
	return sy_command_usage(help);
}
