/* steelyard-node cache: cold caches, where the policy lets the job have them. */
#include "base/file.h"
#include "job/job_options.h"
#include "netem/policy/policy.h"
#include "netem/spec/values.h"
#include "program/cold_cache.h"
#include "program/commands.h"
#include "program/options.h"

#include <stdio.h>

#define MB 1000000

static const char help[] =
    "usage: steelyard-node cache --cold [OPTIONS]\n"
    "\n"
    "Drops this node's page cache, dentries and inodes, so that files are read anew; where CVMFS\n"
    "is installed, its cache is wiped as well. Needs root. Prints one JSON object: what was\n"
    "done. Exit code 4: refused by the policy or by the kernel, stderr says by what.\n"
    "\n"
    "  --cold              this is what is wanted\n" SY_POLICY_OPTIONS_HELP
    "  --cvmfs-quota BYTES  limit of CVMFS' cache, instead of the policy's; 0: left alone\n"
    "  --cvmfs-mb MB       the same, and refused where there is no CVMFS\n"
    "  --root DIR          files are below DIR [/]\n";

struct arguments {
	const char *root;
	bool cold;
	int64_t quota_bytes; /* -1: the policy's */
	bool is_requested;   /* for a limit of CVMFS' cache, which must be had then */
	struct sy_policy_options options;
};

static const struct option options[] = {
    {"cold", no_argument, NULL, 'c'},
    SY_POLICY_OPTIONS,
    {"cvmfs-quota", required_argument, NULL, 'q'},
    {"cvmfs-mb", required_argument, NULL, 'm'},
    {"root", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int complain(const struct sy_error *err, int code)
{
	(void)fprintf(stderr, "steelyard-node cache: %s\n", err->text);
	return code;
}

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;

	switch (option) {
	case 'c':
		arguments->cold = true;
		return 0;
	case 'r':
		arguments->root = optarg;
		return 0;
	case 'q':
		return sy_parse_count(optarg, 0, INT64_MAX, &arguments->quota_bytes, err);
	case 'm':
		if (sy_parse_count(optarg, 1, SY_CVMFS_MB_MAX, &arguments->quota_bytes, err) < 0)
			return -1;
		arguments->quota_bytes *= MB;
		arguments->is_requested = true;
		return 0;
	default:
		return sy_policy_options_parse(&arguments->options, option, optarg, err);
	}
}

/* Check the request. Without an explicit limit of CVMFS' cache the policy's applies. */
static int check_policy(struct arguments *arguments, struct sy_error *err)
{
	struct sy_policy *policy;
	int result;

	if (arguments->options.no_policy) {
		arguments->quota_bytes = arguments->quota_bytes < 0 ? 0 : arguments->quota_bytes;
		return 0;
	}
	policy = sy_policy_read(arguments->options.policy, true, err);
	if (!policy)
		return -1;
	result = sy_policy_allows_cache(policy, &arguments->options.requester, err);
	if (arguments->quota_bytes < 0)
		arguments->quota_bytes = sy_policy_cvmfs_quota_bytes(policy);
	sy_policy_free(policy);
	return result;
}

static int drop_caches(const struct arguments *arguments)
{
	struct sy_error err;
	cleanup_close int root = sy_root_open(arguments->root, &err);
	json_t *answer;

	if (root < 0)
		return complain(&err, SY_EXIT_USAGE);
	if (sy_cache_drop(root, arguments->quota_bytes, arguments->is_requested, &answer, &err) < 0)
		return complain(&err, SY_EXIT_CONDITION);
	return sy_command_print("cache", answer);
}

int sy_cmd_cache(int argc, char **argv)
{
	static const struct sy_command_line line = {"cache", help, options, parse_option};
	struct arguments arguments = {.root = "/", .quota_bytes = -1};
	struct sy_error err;
	int code;

	sy_policy_options_init(&arguments.options);
	code = sy_command_read(&line, argc, argv, &arguments);
	if (code >= 0)
		return code;
	if (!arguments.cold || optind != argc)
		return sy_command_usage(help);
	if (check_policy(&arguments, &err) < 0)
		return complain(&err, SY_EXIT_CONDITION);
	return drop_caches(&arguments);
}
