/* steelyard-node job check, job encode: a user's wishes before anything is queued. */
#include "job/job_options.h"
#include "job/config.h"
#include "program/commands.h"
#include "program/command_line.h"
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

struct wish {
	char request[SY_REQUEST_MAX];
	struct sy_user_options wishes;
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

static int parse_request(struct wish *wish, const char *text, struct sy_error *err)
{
	if (strlen(text) >= sizeof(wish->request))
		return sy_fail(err, "longer than %d bytes", SY_REQUEST_MAX - 1);
	(void)snprintf(wish->request, sizeof(wish->request), "%s", text);
	wish->has_request = true;
	return 0;
}

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct wish *wish = context;

	if (option >= WISH)
		return sy_request_add(wish->request, sizeof(wish->request),
				      (enum sy_user_option)(option - WISH), optarg, err);
	switch (option) {
	case REQUEST:
		return parse_request(wish, optarg, err);
	case CONFIG:
		wish->file = optarg;
		return 0;
	case POLICY:
	case 'f':
		wish->has_policy = true;
		wish->options.policy = optarg;
		return 0;
	case MAX_RATE:
		wish->max_rate = optarg;
		return 0;
	default:
		wish->has_uid |= option == 'u';
		return sy_policy_options_parse(&wish->options, option, optarg, err);
	}
}

/* The user at the keyboard, or the one that a server asks for: with all groups. */
static void find_asker(struct wish *wish)
{
	struct sy_asker *who = &wish->options.asker;
	uid_t uid = wish->has_uid ? who->uid : getuid();
	const struct passwd *user = getpwuid(uid);
	int count = SY_POLICY_OPTIONS_GROUPS;

	who->uid = uid;
	if (who->group_count > 0 || !user ||
	    getgrouplist(user->pw_name, user->pw_gid, wish->options.groups, &count) < 0)
		return;
	who->group_count = (size_t)count;
}

static int check_user_option(void *context, enum sy_user_option which, const char *text,
			     struct sy_error *err)
{
	struct wish *wish = context;
	struct sy_error why;
	char said[sizeof(err->text)];

	if (sy_user_option_parse(&wish->wishes, which, text, wish->config.max_rate_hz, &why) == 0 &&
	    (wish->options.no_policy || sy_check_policy(wish->options.policy, &wish->options.asker,
							which, &wish->wishes, &why) == 0))
		return 0;
	sy_format_option_fault(said, sizeof(said), which, text, &why);
	return sy_fail(err, "%s", said);
}

static int complain(const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard: %s\n", err->text);
	return SY_EXIT_USAGE;
}

static int check(struct wish *wish)
{
	struct sy_error err;

	if (sy_request_read(wish->request, check_user_option, wish, &err) < 0)
		return complain(&err);
	return SY_EXIT_DONE;
}

int sy_job_check_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job check", check_help, check_table,
						    parse_option};
	static struct wish wish;
	struct sy_error err;
	int code;

	sy_policy_options_init(&wish.options);
	sy_job_config_init(&wish.config);
	code = sy_command_read(&line, argc, argv, &wish);
	if (code >= 0)
		return code;
	if (optind < argc)
		return fputs(check_help, stderr) == EOF ? SY_EXIT_BUG : SY_EXIT_USAGE;
	/* Not root's alone, or not right: doctor says so; the node decides. */
	(void)sy_job_config_read(&wish.config, wish.file ? wish.file : SY_JOB_CONFIG, false, &err);
	if (wish.max_rate && sy_job_config_set(&wish.config, "max_rate", wish.max_rate, &err) < 0)
		return complain(&err);
	if (!wish.has_policy)
		wish.options.policy = wish.config.netem_policy;
	find_asker(&wish);
	return check(&wish);
}

int sy_job_encode_command(int argc, char **argv)
{
	static const struct sy_command_line line = {"job encode", encode_help, encode_table,
						    parse_option};
	static struct wish wish;
	int code;

	sy_policy_options_init(&wish.options);
	sy_job_config_init(&wish.config);
	wish.options.no_policy = true;
	wish.config.max_rate_hz = 1000;
	code = sy_command_read(&line, argc, argv, &wish);
	if (code >= 0)
		return code;
	if (optind < argc)
		return fputs(encode_help, stderr) == EOF ? SY_EXIT_BUG : SY_EXIT_USAGE;
	code = check(&wish);
	if (code == SY_EXIT_DONE)
		(void)puts(wish.request);
	return code;
}
