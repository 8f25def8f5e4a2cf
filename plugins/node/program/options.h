/* What the commands of steelyard-node have in common: exit codes, answers, reading of options; the
 * options of the verbs of `job`, and those of commands that check the policy. */
#ifndef STEELYARD_PROGRAM_OPTIONS_H
#define STEELYARD_PROGRAM_OPTIONS_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "job/config.h"
#include "netem/policy/policy.h"

/* Exit codes, the same as those of the command `steelyard`. */
enum sy_exit {
	SY_EXIT_DONE = 0,
	SY_EXIT_BUG = 1,
	SY_EXIT_USAGE = 2,
	SY_EXIT_MISSING = 3,
	SY_EXIT_CONDITION = 4,
};

/* What a command reads its options with. */
struct sy_command_line {
	const char *command; /* as in its complaints: "netem apply" */
	const char *help;
	const struct option *table; /* --help is 'h' */
	/* Take one option: negative, with what was expected, when `optarg` is none of it. */
	int (*take)(int option, void *arguments, struct sy_error *err);
};

/* A command's help, which the user has requested, or needs: the exit code. */
int sy_command_help(const char *help);
int sy_command_usage(const char *help);

/* Parse all options into `context`: -1 when the command may continue, else its exit code. */
int sy_command_read(const struct sy_command_line *line, int argc, char **argv, void *arguments);

/* Print an object, whose reference is taken, as one line: the exit code. */
int sy_command_print(const char *command, json_t *object);

/* --- the verbs of `steelyard-node job`: the configuration, and whose job it is --- */

struct sy_job_options {
	struct sy_job_config config;
	const char *job_id, *node;
	const char *set[16][2]; /* key and value, as given: after the file, which they overrule */
	int sets;
	const char *file;
	char own_path[SY_PATH_SIZE];
};

enum { SY_JOB_OPTION_FIRST = 512 };

#define SY_JOB_OPTIONS                                                                             \
	{"config", required_argument, NULL, SY_JOB_OPTION_FIRST},                                  \
	    {"job-id", required_argument, NULL, SY_JOB_OPTION_FIRST + 1},                          \
	    {"node", required_argument, NULL, SY_JOB_OPTION_FIRST + 2},                            \
	    {"record-dir", required_argument, NULL, SY_JOB_OPTION_FIRST + 3},                      \
	    {"run-dir", required_argument, NULL, SY_JOB_OPTION_FIRST + 4},                         \
	    {"node-program", required_argument, NULL, SY_JOB_OPTION_FIRST + 5},                    \
	    {"netem-policy", required_argument, NULL, SY_JOB_OPTION_FIRST + 6},                    \
	    {"rate", required_argument, NULL, SY_JOB_OPTION_FIRST + 7},                            \
	    {"max-rate", required_argument, NULL, SY_JOB_OPTION_FIRST + 8},                        \
	    {"protect", required_argument, NULL, SY_JOB_OPTION_FIRST + 9},                         \
	    {"bpf", required_argument, NULL, SY_JOB_OPTION_FIRST + 10},                            \
	{                                                                                          \
		"root", required_argument, NULL, SY_JOB_OPTION_FIRST + 11                          \
	}

#define SY_JOB_OPTIONS_HELP                                                                        \
	"  --config FILE         lines KEY=VALUE, root's [" SY_JOB_CONFIG "]; keys are the\n"      \
	"                        next options with _ for -\n"                                      \
	"  --record-dir DIR      folder of records [/var/lib/steelyard/records]\n"                 \
	"  --run-dir DIR         the node's own folder of sockets and states [/run/steelyard]\n"   \
	"  --node-program FILE   steelyard-node [this program]\n"                                  \
	"  --netem-policy FILE   what users may ask for [/etc/steelyard/netem.conf]\n"             \
	"  --rate HZ             samples a second unless the user says otherwise [1]\n"            \
	"  --max-rate HZ         what a user may ask for [100]\n"                                  \
	"  --protect HOSTS       never shaped, as the server: names or addresses with commas;\n"   \
	"                        repeatable\n"                                                     \
	"  --bpf yes|no          the kernel counts, where it can [yes]\n"                          \
	"                        the file also has exclusive=yes: jobs never share a node here\n"  \
	"  --root DIR            counters are read below DIR [/]\n"

/* One of the options above: 1; 0: it is none of them; -1 with what was expected. */
int sy_job_options_parse(struct sy_job_options *options, int option, const char *text,
			 struct sy_error *err);

/* All are taken: read the file, then what they say. That the file is wrong is logged, and what is
 * right in it counts all the same. */
void sy_job_options_resolve(struct sy_job_options *options);

/* steelyard-node, as others can start it. */
const char *sy_job_options_program(struct sy_job_options *options);

/* --- commands that check the policy for a job: the requester, and the policy --- */

#define SY_POLICY_OPTIONS_GROUPS 1024

struct sy_policy_options {
	const char *policy; /* its path */
	bool no_policy;
	bool has_requester; /* --uid or --gid was given */
	struct sy_requester requester;
	gid_t groups[SY_POLICY_OPTIONS_GROUPS];
};

/* Rows for getopt_long(3): letters f, u, g, p, x, and n. */
#define SY_POLICY_OPTIONS_WHO                                                                      \
	{"policy", required_argument, NULL, 'f'}, {"uid", required_argument, NULL, 'u'},           \
	    {"gid", required_argument, NULL, 'g'}, {"partition", required_argument, NULL, 'p'},    \
	{                                                                                          \
		"exclusive", required_argument, NULL, 'x'                                          \
	}
#define SY_POLICY_OPTIONS                                                                          \
	SY_POLICY_OPTIONS_WHO,                                                                     \
	{                                                                                          \
		"no-policy", no_argument, NULL, 'n'                                                \
	}

#define SY_POLICY_OPTIONS_HELP                                                                     \
	"  --policy FILE       instead of " SY_POLICY_PATH "\n"                                    \
	"  --no-policy         root's own wish: no policy is asked\n"                              \
	"  --uid N, --gid N    the job's user and groups (--gid more than once)\n"                 \
	"  --partition NAME    the job's partition (default: not known)\n"                         \
	"  --exclusive yes|no  whether the job has its nodes for itself (default: not known)\n"

void sy_policy_options_init(struct sy_policy_options *options);

/* One of the options above: 1; 0: it is none of them; -1 with what was expected. */
int sy_policy_options_parse(struct sy_policy_options *options, int option, const char *text,
			    struct sy_error *err);

/* A user's or group's number. */
int sy_policy_options_id(const char *text, unsigned *id, struct sy_error *err);

#endif
