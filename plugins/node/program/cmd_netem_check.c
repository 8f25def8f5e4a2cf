/* steelyard-node netem parse and check: what a specification means, and whether it is allowed. */
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"
#include "program/commands.h"
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static const char parse_help[] =
    "usage: steelyard-node netem parse SPEC\n"
    "\n"
    "Prints a specification such as delay=50ms,loss=0.1%,to=10.0.0.0/8 in its canonical form and\n"
    "in numbers, as one JSON object (docs/netem.md). Exit code 2: it is wrong, stderr says "
    "where.\n";

static const char check_help[] =
    "usage: steelyard-node netem check SPEC [OPTIONS]\n"
    "\n"
    "Says whether the policy of this machine allows a condition, as one JSON object. Advice: who\n"
    "applies it looks again. Exit code 2: SPEC is wrong; 4: refused, stderr says by what.\n"
    "\n"
    "  --policy FILE       instead of " SY_POLICY_PATH "; root's, or your own\n"
    "  --uid N, --gid N    ask for this user and these groups (--gid more than once) instead\n"
    "                      of yourself\n"
    "  --partition NAME    the job's partition (default: not known)\n"
    "  --exclusive yes|no  whether the job has its nodes for itself (default: not known)\n"
    "  --device NAME       whether this device may be shaped, too\n"
    "  --cache             whether caches may be dropped, too\n";

struct question {
	const char *text, *device;
	bool cache;
	struct sy_policy_options options;
};

static int usage(const char *help, FILE *out)
{
	int failed = fputs(help, out) == EOF;

	if (failed)
		return SY_EXIT_BUG;
	return out == stdout ? SY_EXIT_DONE : SY_EXIT_USAGE;
}

static int complain(const char *verb, const struct sy_error *err, int code)
{
	(void)fprintf(stderr, "steelyard-node netem %s: %s\n", verb, err->text);
	return code;
}

/* {"requested": canonical, "spec": {…}} */
static json_t *describe(const struct sy_netem *spec)
{
	char canonical[SY_NETEM_SIZE];
	json_t *spec_json = sy_netem_json(spec);

	(void)sy_netem_format(spec, canonical);
	return json_pack("{s:s, s:o}", "requested", canonical, "spec", spec_json);
}

/* The only argument after the options, or NULL after a complaint. */
static const char *read_spec_argument(int argc, char **argv, const char *help)
{
	if (argc - optind == 1)
		return argv[optind];
	(void)fprintf(stderr, "steelyard-node netem %s: expected one SPEC, found %d\n\n%s", argv[0],
		      argc - optind, help);
	return NULL;
}

int sy_netem_parse_command(int argc, char **argv)
{
	static const struct option table[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct sy_netem spec;
	struct sy_error err;
	const char *text;
	int option = getopt_long(argc, argv, "h", table, NULL);

	if (option != -1)
		return usage(parse_help, option == 'h' ? stdout : stderr);
	text = read_spec_argument(argc, argv, parse_help);
	if (!text)
		return SY_EXIT_USAGE;
	if (sy_netem_parse(text, &spec, &err) < 0)
		return complain(argv[0], &err, SY_EXIT_USAGE);
	return sy_command_print("netem parse", describe(&spec));
}

/* An option of `check`: 0, or -1 with what was expected. */
static int parse_option(int option, void *context, struct sy_error *err)
{
	struct question *question = context;

	switch (option) {
	case 'd':
		question->device = optarg;
		return 0;
	case 'c':
		question->cache = true;
		return 0;
	default:
		return sy_policy_options_parse(&question->options, option, optarg, err);
	}
}

static void add_own_groups(struct sy_policy_options *options)
{
	int count = getgroups(SY_POLICY_OPTIONS_GROUPS - 1, options->groups + 1);

	options->groups[0] = getegid();
	options->requester.group_count = count < 0 ? 1 : (size_t)count + 1;
}

static int check_policy(const struct question *question, const struct sy_policy *policy,
			const struct sy_netem *spec, struct sy_error *err)
{
	if (sy_policy_allows_netem(policy, spec, &question->options.requester, err) < 0)
		return -1;
	if (question->device && sy_policy_allows_device(policy, question->device, err) < 0)
		return -1;
	return question->cache ? sy_policy_allows_cache(policy, &question->options.requester, err)
			       : 0;
}

static int check(const struct question *question)
{
	struct sy_policy *policy;
	struct sy_netem spec;
	struct sy_error err;
	json_t *answer;
	int refused;

	if (sy_netem_parse(question->text, &spec, &err) < 0)
		return complain("check", &err, SY_EXIT_USAGE);
	/* Root's or the caller's own: this gives advice and no rights. */
	policy = sy_policy_read(question->options.policy, false, &err);
	refused = !policy || check_policy(question, policy, &spec, &err) < 0;
	sy_policy_free(policy);
	if (refused)
		return complain("check", &err, SY_EXIT_CONDITION);
	answer = describe(&spec);
	(void)json_object_set_new(answer, "policy", json_string(question->options.policy));
	return sy_command_print("netem check", answer);
}

int sy_netem_check_command(int argc, char **argv)
{
	static const struct option table[] = {
	    SY_POLICY_OPTIONS_WHO,
	    {"device", required_argument, NULL, 'd'},
	    {"cache", no_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	static const struct sy_command_line line = {"netem check", check_help, table, parse_option};
	static struct question question;
	int code;

	sy_policy_options_init(&question.options);
	question.options.requester.uid = getuid();
	code = sy_command_read(&line, argc, argv, &question);
	if (code >= 0)
		return code;
	question.text = read_spec_argument(argc, argv, check_help);
	if (!question.text)
		return SY_EXIT_USAGE;
	if (!question.options.has_requester)
		add_own_groups(&question.options);
	return check(&question);
}
