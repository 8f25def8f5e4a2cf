/* Options of commands that check the policy for a job: the requester, and the policy. */
#ifndef STEELYARD_PROGRAM_POLICY_OPTIONS_H
#define STEELYARD_PROGRAM_POLICY_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "netem/policy/policy.h"

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
