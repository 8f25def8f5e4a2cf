/* steelyard-node sample: measure a command, or the processes of a job. */
#include "base/clock.h"
#include "base/file.h"
#include "base/samples.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/record_files.h"
#include "sampler/kernel_count.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A whole number from `least` to `most` that ends at `end`. */
static int parse_integer(const char *text, char end, long least, long most, long *value,
			 const char **rest)
{
	char *after;

	errno = 0;
	*value = strtol(text, &after, 10);
	if (errno || after == text || *text < '0' || *text > '9' || *value < least ||
	    *value > most || (*after && *after != end))
		return -1;
	*rest = after;
	return 0;
}

static int parse_number(const char *option, const char *text, long least, long most, int *value,
			struct sy_error *err)
{
	const char *rest;
	long number;

	if (parse_integer(text, '\0', least, most, &number, &rest) < 0)
		return sy_fail(err, "--%s '%s': expected a whole number from %ld to %ld", option,
			       text, least, most);
	*value = (int)number;
	return 0;
}

/* UID or UID:GID. */
static int parse_owner(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	const char *rest;
	long uid, gid;

	if (parse_integer(text, ':', 0, UINT32_MAX - 1L, &uid, &rest) < 0)
		return sy_fail(err, "--owner '%s': expected UID or UID:GID, as numbers", text);
	gid = uid;
	if (*rest == ':' && parse_integer(rest + 1, '\0', 0, UINT32_MAX - 1L, &gid, &rest) < 0)
		return sy_fail(err, "--owner '%s': expected UID or UID:GID, as numbers", text);
	sampling->has_owner = true;
	sampling->owner_uid = (uid_t)uid;
	sampling->owner_gid = (gid_t)gid;
	return 0;
}

/* µs of CLOCK_MONOTONIC, which is not in the future. */
static int parse_launch_time(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	const char *rest;
	long now_us = (long)sy_now_us(CLOCK_MONOTONIC), launched_us;

	if (parse_integer(text, '\0', 1, now_us, &launched_us, &rest) < 0)
		return sy_fail(err,
			       "--launched '%s': expected microseconds of CLOCK_MONOTONIC, from 1 "
			       "to now (%ld)",
			       text, now_us);
	sampling->launched_us = launched_us;
	return 0;
}

/* The id of a running program. */
static int parse_process(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	if (parse_number("process", text, 1, INT32_MAX, &sampling->process, err) < 0)
		return -1;
	if (kill(sampling->process, 0) < 0 && errno == ESRCH)
		return sy_fail(err, "--process %s: there is no process of that id", text);
	return 0;
}

/* A file that contains such an id. */
static int parse_process_file(const char *path, struct sy_sampling *sampling, struct sy_error *err)
{
	char text[32];
	struct sy_error reason;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open --process-file %s", path);
	got = sy_read_fd(fd, text, sizeof(text));
	if (got < 0)
		return sy_fail_errno(err, (int)-got, "cannot read --process-file %s", path);
	text[strcspn(text, "\n")] = '\0';
	if (parse_process(text, sampling, &reason) < 0)
		return sy_fail(err, "--process-file %s: %s", path, reason.text);
	return 0;
}

static const char help[] =
    "usage: steelyard-node sample --record-dir DIR --job-id ID [OPTIONS] [-- COMMAND ARG...]\n"
    "\n"
    "Samples energy, CPU, memory, I/O and network of a job on this node, and writes its record "
    "and\n"
    "its samples: DIR/ID/NODE.START.json and .csv (docs/formats.md).\n"
    "\n"
    "With COMMAND: starts it, ends with it, exits with its exit code (128 + its signal), and "
    "prints\n"
    "nothing. Without: measures the descendants of every --pid and of every `root PID` message, "
    "until\n"
    "an `end` message, SIGTERM, or the end of the process of --watch and of every root that a\n"
    "message has named.\n"
    "\n"
    "  --record-dir DIR      folder of records; only its owner may be able to write to it;\n"
    "                        made for a COMMAND, else it must be there\n"
    "  --job-id ID           name of the job's folder\n"
    "  --node NAME           name of this node [the host's name up to its first dot]\n"
    "  --rate HZ             samples per second, 0.001 to 1000; 0: totals only [1]\n"
    "  --control SOCKET      listen to messages there (docs/formats.md part 4)\n"
    "  --control-fd N        the same, on a socket that is already bound to --control\n"
    "  --control-made NS     when its name was made, since 1970: where it is gone by now, or "
    "another\n"
    "                        one, the job was ended meanwhile, and there is nothing to do\n"
    "  --launched US         when it was launched, by CLOCK_MONOTONIC: where the first sample of "
    "a\n"
    "                        job that has begun comes more than 1 s later, elapsed_s begins there\n"
    "  --pid PID             a root: its descendants are the job; repeatable\n"
    "  --process PID         a program that runs, as a virtual machine: it and its descendants,\n"
    "                        until it ends\n"
    "  --process-file FILE   the same, its id read from FILE (libvirt: /run/libvirt/qemu/VM.pid)\n"
    "  --watch PID           who tells the job's end (`leave`): gone without a word, the record "
    "is\n"
    "                        not complete\n"
    "  --with-parent         end when whoever started this has ended, kill -9 included\n"
    "  --owner UID[:GID]     whom the files belong to [this user]\n"
    "  --orphan NAME=VALUE   an orphan of the owner's with that in its environment is the job's;\n"
    "                        repeatable: with all of them\n"
    "  --parent PID          a daemon: its children that are the owner's and have every --orphan "
    "in\n"
    "                        their environment are the job's, and those of its successor\n"
    "  --linger S            when --watch and the job are gone, wait so long for word [0]\n"
    "  --job FIELD=VALUE     a field of `job` in the record, `exclusive=yes` too; repeatable\n"
    "  --tag KEY=VALUE       a tag; repeatable\n"
    "  --cache JSON          what was done to the node's caches before (docs/formats.md part 1)\n"
    "  --root DIR            counters of the node (energy, network, pressure) and cgroups are "
    "read\n"
    "                        below DIR; /proc/PID always is the machine's own [/]\n"
    "  --log FILE            messages go there [stderr]\n"
    "  --run-dir DIR         the node's folder of states: conditions of the network\n"
    "                        that lie there for this job go into its record\n"
    "  --bpf PROGRAM         steelyard-bpf: as root, let the kernel count what the job uses; of a\n"
    "                        COMMAND unasked, by the one beside this program; no: not so\n"
    "  --bpf-base DIR        where that is pinned [/sys/fs/bpf/steelyard]\n"
    "  --spool-dir DIR       of a job's records that cannot go to --record-dir, if DIR is there; "
    "then\n"
    "                        --record-dir must bear its mark [" SY_SPOOL_DIR "]\n"
    "  --print-path FD       write the path of the record to this descriptor, and a newline\n";

enum {
	RECORD_DIR = 256,
	JOB_ID,
	NODE,
	RATE,
	CONTROL,
	CONTROL_FD,
	CONTROL_MADE,
	LAUNCHED,
	PID,
	PROCESS,
	PROCESS_FILE,
	WATCH,
	WITH_PARENT,
	OWNER,
	ORPHAN,
	PARENT,
	LINGER,
	JOB,
	TAG,
	CACHE,
	ROOT,
	LOG,
	RUN_DIR,
	BPF,
	BPF_BASE,
	SPOOL_DIR,
	PRINT_PATH
};

static const struct option options[] = {
    {"record-dir", required_argument, NULL, RECORD_DIR},
    {"job-id", required_argument, NULL, JOB_ID},
    {"node", required_argument, NULL, NODE},
    {"rate", required_argument, NULL, RATE},
    {"control", required_argument, NULL, CONTROL},
    {"control-fd", required_argument, NULL, CONTROL_FD},
    {"control-made", required_argument, NULL, CONTROL_MADE},
    {"launched", required_argument, NULL, LAUNCHED},
    {"pid", required_argument, NULL, PID},
    {"process", required_argument, NULL, PROCESS},
    {"process-file", required_argument, NULL, PROCESS_FILE},
    {"watch", required_argument, NULL, WATCH},
    {"with-parent", no_argument, NULL, WITH_PARENT},
    {"owner", required_argument, NULL, OWNER},
    {"orphan", required_argument, NULL, ORPHAN},
    {"parent", required_argument, NULL, PARENT},
    {"linger", required_argument, NULL, LINGER},
    {"job", required_argument, NULL, JOB},
    {"tag", required_argument, NULL, TAG},
    {"cache", required_argument, NULL, CACHE},
    {"root", required_argument, NULL, ROOT},
    {"log", required_argument, NULL, LOG},
    {"run-dir", required_argument, NULL, RUN_DIR},
    {"bpf", required_argument, NULL, BPF},
    {"bpf-base", required_argument, NULL, BPF_BASE},
    {"spool-dir", required_argument, NULL, SPOOL_DIR},
    {"print-path", required_argument, NULL, PRINT_PATH},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int add_root(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	if (sampling->roots == SY_MAX_ROOTS)
		return sy_fail(err, "--pid: at most %d", SY_MAX_ROOTS);
	return parse_number("pid", text, 1, INT32_MAX, &sampling->root[sampling->roots++], err);
}

/* --job, --tag and --cache say the same as the messages do. */
static int add_message(const char *word, const char *text, struct sy_sampling *sampling,
		       struct sy_error *err)
{
	char line[SY_MESSAGE_SIZE];
	struct sy_message message;

	if (strlen(text) > sizeof(line) - 16)
		return sy_fail(err, "--%s: longer than %zu bytes", word, sizeof(line) - 16);
	(void)snprintf(line, sizeof(line), "%s %s", word, text);
	if (!strcmp(word, "job") && strchr(line, '='))
		*strchr(line, '=') = ' ';
	if (sy_message_parse(line, &message, err) < 0)
		return -1;
	sy_message_apply(&message, &sampling->notes);
	return 0;
}

static int parse_rate(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	struct sy_error reason;

	if (sy_rate_parse(text, SY_MAX_RATE_HZ, &sampling->rate_hz, &reason) == 0)
		return 0;
	return sy_fail(err, "--rate=%.40s: %s", text, reason.text);
}

static int open_log(const char *path, struct sy_error *err)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open --log %s", path);
	(void)dup2(fd, STDERR_FILENO);
	(void)close(fd);
	return 0;
}

static int add_mark(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	if (!strchr(text, '='))
		return sy_fail(err, "--orphan '%s': expected NAME=VALUE", text);
	if (sampling->marks.count == SY_MAX_MARKS)
		return sy_fail(err, "--orphan: more than %d", SY_MAX_MARKS);
	sampling->marks.text[sampling->marks.count++] = text;
	return 0;
}

/* Whole numbers into fields of their own. */
static const struct {
	int option;
	const char *name;
	size_t at;
	long least, most;
} numbers[] = {
    {CONTROL_FD, "control-fd", offsetof(struct sy_sampling, control_fd), 0, INT32_MAX},
    {WATCH, "watch", offsetof(struct sy_sampling, watch), 1, INT32_MAX},
    {PARENT, "parent", offsetof(struct sy_sampling, parent), 1, INT32_MAX},
    {LINGER, "linger", offsetof(struct sy_sampling, linger_s), 0, 86400},
    {PRINT_PATH, "print-path", offsetof(struct sy_sampling, print_fd), 0, INT32_MAX},
};

/* 1: not such an option. */
static int parse_number_option(int option, const char *text, struct sy_sampling *sampling,
			       struct sy_error *err)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].option == option)
			return parse_number(numbers[i].name, text, numbers[i].least,
					    numbers[i].most,
					    (int *)((char *)sampling + numbers[i].at), err);
	return 1;
}

/* Store a text in the field of its option. 1: not such an option. */
static int parse_text_option(int option, const char *text, struct sy_sampling *sampling)
{
	const struct {
		int option;
		const char **at;
	} texts[] = {
	    {RECORD_DIR, &sampling->record_dir},
	    {JOB_ID, &sampling->job_id},
	    {NODE, &sampling->node},
	    {ROOT, &sampling->root_dir},
	    {RUN_DIR, &sampling->run_dir},
	    {BPF, &sampling->bpf},
	    {BPF_BASE, &sampling->bpf_base},
	    {SPOOL_DIR, &sampling->spool_dir},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].option == option) {
			*texts[i].at = text;
			return 0;
		}
	return 1;
}

static int parse_option(int option, const char *text, struct sy_sampling *sampling,
			struct sy_error *err)
{
	int result = parse_number_option(option, text, sampling, err);

	if (result == 1)
		result = parse_text_option(option, text, sampling);
	if (result < 1)
		return result;
	switch (option) {
	case RATE:
		return parse_rate(text, sampling, err);
	case CONTROL:
		sampling->control = text;
		return 0;
	case CONTROL_MADE:
		sampling->control_made_ns = strtoull(text, NULL, 10);
		return 0;
	case LAUNCHED:
		return parse_launch_time(text, sampling, err);
	case PID:
		return add_root(text, sampling, err);
	case PROCESS:
		return parse_process(text, sampling, err);
	case PROCESS_FILE:
		return parse_process_file(text, sampling, err);
	case WITH_PARENT:
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		return 0;
	case OWNER:
		return parse_owner(text, sampling, err);
	case ORPHAN:
		return add_mark(text, sampling, err);
	case JOB:
		return add_message("job", text, sampling, err);
	case TAG:
		return add_message("tag", text, sampling, err);
	case CACHE:
		return add_message("cache", text, sampling, err);
	default:
		return sy_fail(err, "unknown option (see --help)");
	}
}

static const char *read_host_name(void)
{
	static char name[256];

	if (gethostname(name, sizeof(name) - 1) < 0 || !*name)
		return "localhost";
	name[strcspn(name, ".")] = '\0';
	return name;
}

static int check(struct sy_sampling *sampling, struct sy_error *err)
{
	if (!sampling->record_dir || !sampling->job_id)
		return sy_fail(err, "--record-dir and --job-id are needed");
	if (!sy_is_file_word(sampling->job_id))
		return sy_fail(err,
			       "--job-id '%s': expected a name without '/', not beginning with "
			       "'.'",
			       sampling->job_id);
	if (!sy_is_file_word(sampling->node))
		return sy_fail(err,
			       "--node '%s': expected a name without '/', not beginning with "
			       "'.'",
			       sampling->node);
	if (sampling->command && (sampling->roots || sampling->process))
		return sy_fail(err, "--pid, --process and a command exclude each other");
	if (sampling->process && sampling->watch)
		return sy_fail(err, "--process and --watch exclude each other: it ends with it");
	return 0;
}

/* 0: continue; 1: help was requested; -1: wrong usage. */
static int parse(int argc, char **argv, struct sy_sampling *sampling, struct sy_error *err)
{
	const char *log = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (option == 'h')
			return 1;
		if (option == '?')
			return sy_fail(err, "'%s': unknown option, or its value is missing",
				       argv[optind - 1]);
		if (option == LOG)
			log = optarg;
		else if (parse_option(option, optarg, sampling, err) < 0)
			return -1;
	}
	if (optind < argc)
		sampling->command = argv + optind;
	if (check(sampling, err) < 0)
		return -1;
	return log ? open_log(log, err) : 0;
}

static int sample(int argc, char **argv, struct sy_sampling *sampling)
{
	struct sy_error err;
	int result = parse(argc, argv, sampling, &err);

	if (result > 0) {
		(void)fputs(help, stdout);
		return SY_EXIT_DONE;
	}
	if (result < 0) {
		(void)fprintf(stderr, "steelyard-node sample: %s\n", err.text);
		return SY_EXIT_USAGE;
	}
	if (sampling->command) /* by hand: nobody has made it before */
		(void)mkdir(sampling->record_dir, 0755);
	sy_kernel_count_choose_program(sampling);
	return sampling->command ? sy_measure_command(sampling) : sy_attend_job(sampling);
}

int sy_cmd_sample(int argc, char **argv)
{
	struct sy_sampling sampling = {.root_dir = "/",
				       .node = read_host_name(),
				       .spool_dir = SY_SPOOL_DIR,
				       .rate_hz = 1,
				       .control_fd = -1,
				       .print_fd = -1,
				       .notes = {json_object(), json_object(), json_object()}};
	int code = sample(argc, argv, &sampling);

	json_decref(sampling.notes.job);
	json_decref(sampling.notes.tags);
	json_decref(sampling.notes.conditions);
	return code;
}
