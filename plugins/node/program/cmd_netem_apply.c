/* steelyard-node netem apply: put a condition in place, print what was done. */
#include "base/json_document.h"
#include "counters/process_table.h"
#include "netem/netem.h"
#include "netem/policy/policy.h"
#include "netem/spec/values.h"
#include "program/commands.h"
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: steelyard-node netem apply --run-dir DIR --node NAME --job-id JOB --uid UID\n"
    "                                  [OPTIONS] -- SPEC\n"
    "\n"
    "Puts network conditions in place (root), verifies them and prints them as one JSON object\n"
    "(docs/formats.md, part 9). Exit code 2: SPEC is wrong; 3: a program is missing; 4: refused "
    "by\n"
    "the policy, or it could not be put in place: then nothing has changed.\n"
    "\n"
    "  --watch PID         when this process has ended, anybody may undo it\n"
    "  --mark NAME=VALUE   nor then, as long as a process of --uid has that in its environment\n"
    "                      (repeatable: with all of them)\n"
    "  --cgroup PATH       shape this job's traffic alone: its cgroup, as in /proc/PID/cgroup\n"
    "  --peer ADDRESS      round-trip times are measured to it (repeatable: each link of\n"
    "                      sites= takes the first one at its other end)\n"
    "  --protect NETWORK   never shaped, as the scheduler's addresses (more than "
    "once)\n" SY_POLICY_OPTIONS_HELP;

struct arguments {
	struct sy_netem spec;
	struct sy_policy_options options;
	struct sy_netem_request request;
};

static int complain(const struct sy_error *err, int code)
{
	(void)fprintf(stderr, "steelyard-node netem apply: %s\n", err->text);
	return code;
}

static int add_protected(const char *text, struct sy_netem_request *request, struct sy_error *err)
{
	if (request->protected_count == SY_PROTECTED_MAX)
		return sy_fail(err, "expected at most %d of them", SY_PROTECTED_MAX);
	return sy_parse_network(text, &request->protect[request->protected_count++], err);
}

static int add_peer(const char *text, struct sy_netem_request *request, struct sy_error *err)
{
	if (request->peer_count == SY_PEERS_MAX)
		return sy_fail(err, "expected at most %d of them", SY_PEERS_MAX);
	request->peers[request->peer_count++] = text;
	return 0;
}

static int add_mark(const char *text, struct sy_netem_request *request, struct sy_error *err)
{
	if (!strchr(text, '='))
		return sy_fail(err, "expected NAME=VALUE");
	if (!request->marks)
		request->marks = json_array();
	if (json_array_size(request->marks) == SY_MAX_MARKS)
		return sy_fail(err, "expected at most %d of them", SY_MAX_MARKS);
	return json_array_append_new(request->marks, sy_json_text(text));
}

static int parse_watch(const char *text, struct sy_netem_request *request, struct sy_error *err)
{
	int64_t number;

	if (sy_parse_count(text, 0, INT32_MAX, &number, err) < 0)
		return -1;
	request->watch = (pid_t)number;
	return 0;
}

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;

	switch (option) {
	case 'r':
		arguments->request.run_dir = optarg;
		return 0;
	case 'N':
		arguments->request.node = optarg;
		return 0;
	case 'j':
		arguments->request.job_id = optarg;
		return 0;
	case 'c':
		arguments->request.cgroup = optarg;
		return 0;
	case 'e':
		return add_peer(optarg, &arguments->request, err);
	case 'P':
		return add_protected(optarg, &arguments->request, err);
	case 'm':
		return add_mark(optarg, &arguments->request, err);
	case 'w':
		return parse_watch(optarg, &arguments->request, err);
	default:
		return sy_policy_options_parse(&arguments->options, option, optarg, err);
	}
}

static const struct option table[] = {
    {"run-dir", required_argument, NULL, 'r'},
    {"node", required_argument, NULL, 'N'},
    {"job-id", required_argument, NULL, 'j'},
    {"watch", required_argument, NULL, 'w'},
    {"cgroup", required_argument, NULL, 'c'},
    {"peer", required_argument, NULL, 'e'},
    {"protect", required_argument, NULL, 'P'},
    {"mark", required_argument, NULL, 'm'},
    SY_POLICY_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int apply(struct arguments *arguments)
{
	enum sy_netem_failure failure = SY_NETEM_REFUSED;
	struct sy_error err = {{0}};
	json_t *document = NULL;

	if (sy_netem_apply(&arguments->request, &document, &failure, &err) == 0)
		return sy_command_print("netem apply", document);
	return complain(&err, failure == SY_NETEM_MISSING ? SY_EXIT_MISSING : SY_EXIT_CONDITION);
}

static int apply_with_policy(struct arguments *arguments)
{
	struct sy_error err = {{0}};
	struct sy_policy *policy;
	int result;

	if (arguments->options.no_policy)
		return apply(arguments);
	policy = sy_policy_read(arguments->options.policy, true, &err);
	if (!policy)
		return complain(&err, SY_EXIT_CONDITION);
	arguments->request.policy = policy;
	result = sy_policy_allows_netem(policy, &arguments->spec, &arguments->options.requester,
					&err) < 0
		     ? complain(&err, SY_EXIT_CONDITION)
		     : apply(arguments);
	sy_policy_free(policy);
	return result;
}

static int run(int argc, char **argv, struct arguments *arguments)
{
	static const struct sy_command_line line = {"netem apply", help, table, parse_option};
	struct sy_error err = {{0}};
	int code = sy_command_read(&line, argc, argv, arguments);

	if (code >= 0)
		return code;
	if (argc - optind != 1 || !arguments->request.run_dir || !arguments->request.node ||
	    !arguments->request.job_id ||
	    !(arguments->options.has_requester || arguments->options.no_policy))
		return sy_command_usage(help);
	if (sy_netem_parse(argv[optind], &arguments->spec, &err) < 0)
		return complain(&err, SY_EXIT_USAGE);
	arguments->request.uid = arguments->options.requester.uid;
	return apply_with_policy(arguments);
}

int sy_netem_apply_command(int argc, char **argv)
{
	static struct arguments arguments;

	sy_policy_options_init(&arguments.options);
	arguments.request.spec = &arguments.spec;
	arguments.request.answer_fd = STDOUT_FILENO;
	return run(argc, argv, &arguments);
}
