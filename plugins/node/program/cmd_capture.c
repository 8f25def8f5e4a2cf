/* steelyard-node capture: headers of a job's packets, where the policy lets the job have them. */
#include "base/folder.h"
#include "capture/dumpcap.h"
#include "netem/policy/file.h"
#include "netem/spec/values.h"
#include "program/command_line.h"
#include "program/commands.h"
#include "program/policy_options.h"
#include "record/file.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAST_BYTES   10000
#define DEFAULT_BYTES 100000000
#define SNAP_BYTES    128 /* headers of TCP over IPv6 with all options end before it */

static const char help[] =
    "usage: steelyard-node capture --record-dir DIR --node NAME --job-id ID [OPTIONS]\n"
    "\n"
    "Records the headers of this node's packets with dumpcap until --watch has ended or SIGTERM, "
    "as\n"
    "DIR/ID/NAME.START.pcapng. Needs root. Once it has begun, it prints one JSON object, closes\n"
    "stdout and stderr, and goes on. Exit code 3: dumpcap is not installed; 4: refused.\n"
    "\n"
    "  --run-dir DIR       for the record: DIR/capture/NODE.JOB.json while it goes on, then\n"
    "                      NODE.JOB.done.json\n"
    "  --watch PID         end with this process\n"
    "  --owner UID:GID     whom the file belongs to; only he and root can read it\n"
    "  --max-bytes N       of the file [the policy's, 100000000 without one]\n"
    "  --snap N            bytes of each packet, 64 to 262144 [128]; more than the headers only\n"
    "                      with --no-policy\n"
    "  --device D          there [the node's uplinks]\n"
    "  --filter-to NET     only packets to or from there; repeatable\n"
    "  --protect NET       none to or from there; repeatable. ssh is never "
    "recorded\n" SY_POLICY_OPTIONS_HELP;

struct wish {
	struct sy_capture capture;
	struct sy_policy_options options;
};

static const struct option options[] = {
    {"record-dir", required_argument, NULL, 'R'},
    {"run-dir", required_argument, NULL, 'r'},
    {"node", required_argument, NULL, 'N'},
    {"job-id", required_argument, NULL, 'j'},
    {"watch", required_argument, NULL, 'w'},
    {"owner", required_argument, NULL, 'o'},
    {"max-bytes", required_argument, NULL, 'm'},
    {"snap", required_argument, NULL, 's'},
    {"device", required_argument, NULL, 'd'},
    {"filter-to", required_argument, NULL, 't'},
    {"protect", required_argument, NULL, 'P'},
    SY_POLICY_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int complain(const struct sy_error *err, int code)
{
	(void)fprintf(stderr, "steelyard-node capture: %s\n", err->text);
	return code;
}

static int take_owner(struct sy_capture *capture, char *text, struct sy_error *err)
{
	char *group = strchr(text, ':');

	if (!group)
		return sy_fail(err, "expected UID:GID, as numbers");
	*group = '\0';
	capture->has_owner = true;
	return sy_policy_options_id(text, &capture->owner_uid, err) < 0
		   ? -1
		   : sy_policy_options_id(group + 1, &capture->owner_gid, err);
}

static int take_network(struct sy_network *list, int *count, struct sy_error *err)
{
	if (*count == SY_CAPTURE_NETWORKS)
		return sy_fail(err, "expected at most %d of them", SY_CAPTURE_NETWORKS);
	return sy_parse_network(optarg, &list[(*count)++], err);
}

static int take_device(struct sy_capture *capture, struct sy_error *err)
{
	capture->device = optarg;
	return if_nametoindex(optarg) ? 0 : sy_fail(err, "there is no such device");
}

static int take_count(int64_t least, int64_t most, int *value, struct sy_error *err)
{
	int64_t number;

	if (sy_parse_count(optarg, least, most, &number, err) < 0)
		return -1;
	*value = (int)number;
	return 0;
}

static int take_option(int option, void *context, struct sy_error *err)
{
	struct wish *wish = context;
	struct sy_capture *capture = &wish->capture;

	switch (option) {
	case 'R':
		capture->record_dir = optarg;
		return 0;
	case 'r':
		capture->run_dir = optarg;
		return 0;
	case 'N':
		capture->node = optarg;
		return 0;
	case 'j':
		capture->job_id = optarg;
		return 0;
	case 'w':
		return take_count(1, INT32_MAX, &capture->watch, err);
	case 'o':
		return take_owner(capture, optarg, err);
	case 'm':
		return sy_parse_count(optarg, LEAST_BYTES, INT64_MAX / 2, &capture->max_bytes, err);
	case 's':
		return take_count(64, 262144, &capture->snap_bytes, err);
	case 'd':
		return take_device(capture, err);
	case 't':
		return take_network(capture->only, &capture->only_count, err);
	case 'P':
		return take_network(capture->protect, &capture->protect_count, err);
	default:
		return sy_policy_options_take(&wish->options, option, optarg, err);
	}
}

/* What the policy says to it, its limit, and whom it protects. */
static int ask_policy(struct wish *wish, struct sy_error *err)
{
	struct sy_capture *capture = &wish->capture;
	struct sy_policy *policy;
	int64_t most;
	int result;

	if (wish->options.no_policy)
		return 0;
	policy = sy_policy_read(wish->options.policy, true, err);
	if (!policy)
		return -1;
	result = sy_policy_allows_capture(policy, &wish->options.asker, err);
	most = sy_policy_capture_max_bytes(policy);
	if (!capture->max_bytes || capture->max_bytes > most)
		capture->max_bytes = most;
	if (capture->snap_bytes > SNAP_BYTES)
		capture->snap_bytes = SNAP_BYTES;
	capture->protect_count +=
	    sy_policy_protected(policy, capture->protect + capture->protect_count,
				SY_CAPTURE_NETWORKS - capture->protect_count);
	sy_policy_free(policy);
	return result;
}

/* Whoever waits for the end of our output goes on. */
static void ready(const char *document)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)printf("%s\n", document);
	(void)fflush(stdout);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
}

static int check(const struct sy_capture *capture, struct sy_error *err)
{
	if (!capture->record_dir || !capture->node || !capture->job_id)
		return sy_fail(err, "--record-dir, --node and --job-id are needed");
	if (!sy_is_file_word(capture->node) || !sy_is_file_word(capture->job_id))
		return sy_fail(err, "--node and --job-id must be names without '/'");
	return 0;
}

int sy_cmd_capture(int argc, char **argv)
{
	static const struct sy_command_line line = {"capture", help, options, take_option};
	static struct wish wish = {.capture = {.snap_bytes = SNAP_BYTES}};
	struct sy_error err;
	bool missing;
	int code;

	sy_policy_options_init(&wish.options);
	code = sy_command_read(&line, argc, argv, &wish);
	if (code >= 0)
		return code;
	if (optind != argc)
		(void)sy_fail(&err, "unexpected argument %s", argv[optind]);
	if (optind != argc || check(&wish.capture, &err) < 0)
		return complain(&err, SY_EXIT_USAGE);
	if (ask_policy(&wish, &err) < 0)
		return complain(&err, SY_EXIT_CONDITION);
	if (!wish.capture.max_bytes)
		wish.capture.max_bytes = DEFAULT_BYTES;
	if (sy_capture_run(&wish.capture, ready, &missing, &err) < 0)
		return complain(&err, missing ? SY_EXIT_MISSING : SY_EXIT_CONDITION);
	return SY_EXIT_DONE;
}
