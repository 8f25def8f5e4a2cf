/* Options that the verbs of `steelyard-node job` share: the configuration, and whose job it is. */
#ifndef STEELYARD_PROGRAM_JOB_CONFIG_OPTIONS_H
#define STEELYARD_PROGRAM_JOB_CONFIG_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "base/error.h"
#include "job/config.h"

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

/* All are taken: read the file, then what they say. -1: the file is wrong, and what is right in it
 * counts all the same. */
int sy_job_options_resolve(struct sy_job_options *options, struct sy_error *err);

/* steelyard-node, as others can start it. */
const char *sy_job_options_program(struct sy_job_options *options);

#endif
