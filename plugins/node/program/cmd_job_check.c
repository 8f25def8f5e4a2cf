/* steelyard-node job check, job encode: a user's options before the job is queued. */
#include "job/config.h"
#include "job/job_options.h"
#include "program/commands.h"
#include "program/options.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char check_help[] =
    "usage: steelyard-node job check (--request TEXT | WISHES) [OPTIONS]\n"
    "\n"
    "Whether a request will do, before it is queued: its grammar, and what the policy says where "
    "it\n"
    "can be read here. Exit code 2 with one line that says what was expected, as sbatch says it.\n"
    "\n"
    "  --request TEXT      as `job encode` prints it\n"
    "  --netem SPEC, --tag KEY=VALUE, --sample-rate HZ, --cache cold|warm|cold:cvmfs=MB:\n"
    "                      the wishes themselves\n"
    "  --config FILE       netem_policy and max_rate stand there [" SY_JOB_CONFIG "]\n"
    "  --netem-policy F    the same as --policy\n"
    "  --max-rate HZ       what may be asked for [100]\n" SY_POLICY_OPTIONS_HELP;

static const char encode_help[] =
    "usage: steelyard-node job encode [--netem SPEC] [--tag KEY=VALUE]... [--sample-rate HZ]\n"
    "                                 [--cache cold|warm|cold:cvmfs=MB]\n"
    "\n"
    "Prints the wishes as one word that any scheduler carries (docs/formats.md part 11), once\n"
    "their grammar was found right; exit code 2 otherwise.\n";

struct arguments {
	char request[SY_REQUEST_MAX];
	struct sy_user_options user_options;
	struct sy_policy_options options;
	struct sy_job_config config;
	const char *file, *max_rate;
	bool has_policy, has_uid, has_request;
};

enum { REQUEST = 256, CONFIG, POLICY, MAX_RATE, WISH = 300 };

#define WISH_OPTIONS                                                                               \
	{"tag", required_argument, NULL, WISH + SY_USER_OPTION_TAG},                               \
	    {"sample-rate", required_argument, NULL, WISH + SY_USER_OPTION_RATE},                  \
	    {"netem", required_argument, NULL, WISH + SY_USER_OPTION_NETEM},                       \
	{                                                                                          \
		"cache", required_argument, NULL, WISH + SY_USER_OPTION_CACHE                      \
	}

static const struct option check_table[] = {
    {"request", required_argument, NULL, REQUEST},
    {"config", required_argument, NULL, CONFIG},
    {"netem-policy", required_argument, NULL, POLICY},
    {"max-rate", required_argument, NULL, MAX_RATE},
    WISH_OPTIONS,
    SY_POLICY_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const struct option encode_table[] = {
    WISH_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_request(struct arguments *arguments, const char *text, struct sy_error *err)
{
	if (strlen(text) >= sizeof(arguments->request))
		return sy_fail(err, "longer than %d bytes", SY_REQUEST_MAX - 1);
	(void)snprintf(arguments->request, sizeof(arguments->request), "%s", text);
	arguments->has_request = true;
	return 0;
}

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;

	if (option >= WISH)
		return sy_request_add(arguments->request, sizeof(arguments->request),
				      (enum sy_user_option)(option - WISH), optarg, err);
	switch (option) {
	case REQUEST:
		return parse_request(arguments, optarg, err);
	case CONFIG:
		arguments->file = optarg;
		return 0;
	case POLICY:
	case 'f':
		arguments->has_policy = true;
		arguments->options.policy = optarg;
		return 0;
	case MAX_RATE:
		arguments->max_rate = optarg;
		return 0;
	default:
		arguments->has_uid |= option == 'u';
		return sy_policy_options_parse(&arguments->options, option, optarg, err);
	}
}

/* The calling user, or the user that a server checks for: with all groups. */
static void find_asker(struct arguments *arguments)
{
	struct sy_requester *requester = &arguments->options.requester;
	uid_t uid = arguments->has_uid ? requester->uid : getuid();
	const struct passwd *user = getpwuid(uid);
	int count = SY_POLICY_OPTIONS_GROUPS;

	requester->uid = uid;
	if (requester->group_count > 0 || !user ||
	    getgrouplist(user->pw_name, user->pw_gid, arguments->options.groups, &count) < 0)
		return;
	requester->group_count = (size_t)count;
}

static int check_user_option(void *context, enum sy_user_option which, const char *text,
			     struct sy_error *err)
{
	struct arguments *arguments = context;
	struct sy_error reason;
	char fault[sizeof(err->text)];

	if (sy_user_option_parse(&arguments->user_options, which, text,
				 arguments->config.max_rate_hz, &reason) == 0 &&
	    (arguments->options.no_policy ||
	     sy_check_policy(arguments->options.policy, &arguments->options.requester, which,
			     &arguments->user_options, &reason) == 0))
		return 0;
	sy_format_option_fault(fault, sizeof(fault), which, text, &reason);
	return sy_fail(err, "%s", fault);
}

static int complain(const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard: %s\n", err->text);
	return SY_EXIT_USAGE;
}

static int check(struct arguments *arguments)
{
	struct sy_error err;

	if (sy_request_read(arguments->request, check_user_option, arguments, &err) < 0)
		return complain(&err);
	return SY_EXIT_DONE;
}

int sy_job_check_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job check", check_help, check_table,
						    parse_option};
	static struct arguments arguments;
	struct sy_error err;
	int code;

	sy_policy_options_init(&arguments.options);
	sy_job_config_init(&arguments.config);
	code = sy_command_read(&line, argc, argv, &arguments);
	if (code >= 0)
		return code;
	if (optind < argc)
		return sy_command_usage(check_help);
	/* Not root's alone, or not right: doctor reports it; the node decides. */
	(void)sy_job_config_read(&arguments.config, arguments.file ? arguments.file : SY_JOB_CONFIG,
				 false, &err);
	if (arguments.max_rate &&
	    sy_job_config_set(&arguments.config, "max_rate", arguments.max_rate, &err) < 0)
		return complain(&err);
	if (!arguments.has_policy)
		arguments.options.policy = arguments.config.netem_policy;
	find_asker(&arguments);
	return check(&arguments);
}

int sy_job_encode_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job encode", encode_help, encode_table,
						    parse_option};
	static struct arguments arguments;
	int code;

	sy_policy_options_init(&arguments.options);
	sy_job_config_init(&arguments.config);
	arguments.options.no_policy = true;
	arguments.config.max_rate_hz = 1000;
	code = sy_command_read(&line, argc, argv, &arguments);
	if (code >= 0)
		return code;
	if (optind < argc)
		return sy_command_usage(encode_help);
	code = check(&arguments);
	if (code == SY_EXIT_DONE)
		(void)puts(arguments.request);
	return code;
}
