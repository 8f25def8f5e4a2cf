/* steelyard-node doctor: is everything in place on this node, and if not, what to do. */
#include "base/file.h"
#include "doctor/doctor.h"
#include "netem/policy/policy.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/record_files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: steelyard-node doctor [OPTIONS]\n"
    "\n"
    "What this node can measure, and what it lacks: a line each, with what to do. Nothing but "
    "this\n"
    "program is needed. As root it says most: samplers are root's. Exit code 3 when something is\n"
    "missing without which no job is measured here; what only narrows the result is a warning.\n"
    "\n"
    "  --json              a list of objects: name, state (ok, warning, missing), found, advice\n"
    "  --only NAME         this check alone, as it is named in the list\n"
    "  --plugstack FILE    Slurm's plugstack.conf, where it lies neither beside $SLURM_CONF nor\n"
    "                      where packages put it\n"
    "  --config FILE       settings of a node of PBS [" SY_JOB_CONFIG "]\n"
    "  --node-program P, --record-dir DIR, --run-dir DIR, --bpf yes|no\n"
    "                      instead of what stands there; --said-in WHERE: whence these are\n"
    "  --spool-dir DIR     where records wait on this node [" SY_SPOOL_DIR "]\n"
    "  --root DIR          read a recorded tree instead of /; what would have to be tried is left "
    "out\n";

enum { PLUGSTACK = 256, CONFIG, SAID_IN, NODE_PROGRAM, RECORD_DIR, RUN_DIR, BPF, SPOOL_DIR };

static const struct {
	int option;
	const char *key;
} keys[] = {
    {NODE_PROGRAM, "node_program"}, {RECORD_DIR, "record_dir"}, {RUN_DIR, "run_dir"}, {BPF, "bpf"}};

/* Command-line options overrule the file, so they are applied after it was read. */
struct arguments {
	struct sy_doctor doctor;
	const char *value[sizeof(keys) / sizeof(keys[0])];
	const char *named_in;
	bool as_json;
};

static int parse_option(int option, void *context, struct sy_error *err)
{
	struct arguments *arguments = context;
	struct sy_job_config trial;

	if (option == 'j')
		arguments->as_json = true;
	else if (option == 'o')
		arguments->doctor.only = optarg;
	else if (option == 'r')
		arguments->doctor.dir = optarg;
	else if (option == PLUGSTACK)
		arguments->doctor.plugstack = optarg;
	else if (option == CONFIG)
		arguments->doctor.settings = optarg;
	else if (option == SAID_IN)
		arguments->named_in = optarg;
	else if (option == SPOOL_DIR)
		arguments->doctor.spool_dir = optarg;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (option != keys[i].option)
			continue;
		arguments->value[i] = optarg;
		sy_job_config_init(&trial);
		return sy_job_config_set(&trial, keys[i].key, optarg, err);
	}
	return 0;
}

static void set_up(struct arguments *arguments)
{
	struct sy_doctor *doctor = &arguments->doctor;
	struct sy_error err;

	doctor->is_machine = strcmp(doctor->dir, "/") == 0;
	doctor->as_root = geteuid() == 0;
	doctor->checks = json_array();
	sy_job_config_init(&doctor->config);
	sy_doctor_find_setup(doctor);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (arguments->value[i])
			(void)sy_job_config_set(&doctor->config, keys[i].key, arguments->value[i],
						&err);
	if (arguments->named_in)
		(void)snprintf(doctor->setup_file, sizeof(doctor->setup_file), "%s",
			       arguments->named_in);
}

static void run_checks(struct sy_doctor *doctor)
{
	if (doctor->is_machine) {
		sy_doctor_check_programs(doctor);
		sy_doctor_check_plugin(doctor);
	}
	sy_doctor_check_cgroups(doctor);
	sy_doctor_check_energy(doctor);
	sy_doctor_check_idle_power(doctor);
	if (doctor->is_machine) {
		sy_doctor_check_kernel_counts(doctor);
		sy_doctor_try_record_folder(doctor);
		sy_doctor_check_record_folder(doctor);
		if (!doctor->folder_hangs) {
			sy_doctor_check_records(doctor);
			sy_doctor_check_sweep(doctor);
			sy_doctor_check_spool(doctor);
		}
		sy_doctor_check_run_folder(doctor);
		sy_doctor_check_network(doctor);
	}
}

static const char *text_of(const json_t *check, const char *key)
{
	const char *text = json_string_value(json_object_get(check, key));

	return text ? text : "";
}

static int print(const json_t *checks)
{
	json_t *check;
	size_t i;

	json_array_foreach((json_t *)checks, i, check)
	{
		const char *state = text_of(check, "state"), *advice = text_of(check, "advice");

		(void)printf("%-8s %s: %s\n", strcmp(state, "missing") ? state : "MISSING",
			     text_of(check, "name"), text_of(check, "found"));
		if (advice[0])
			(void)printf("%-8s -> %s\n", "", advice);
	}
	if (fflush(stdout) == 0)
		return SY_EXIT_DONE;
	perror("steelyard-node doctor: cannot write to stdout");
	return SY_EXIT_BUG;
}

static int print_result(struct arguments *arguments)
{
	struct sy_doctor *doctor = &arguments->doctor;
	int missing = sy_doctor_count(doctor, SY_MISSING), code;

	if (doctor->only && !json_array_size(doctor->checks) && !arguments->as_json) {
		(void)fprintf(stderr,
			      "steelyard-node doctor: no check '%s' has anything to say here; "
			      "without --only all are named\n",
			      doctor->only);
		return SY_EXIT_USAGE;
	}
	if (arguments->as_json) {
		code = sy_command_print("doctor", doctor->checks);
	} else {
		code = print(doctor->checks);
		json_decref(doctor->checks);
	}
	return code == SY_EXIT_DONE && missing ? SY_EXIT_MISSING : code;
}

int sy_cmd_doctor(int argc, char **argv)
{
	static const struct option table[] = {
	    {"json", no_argument, NULL, 'j'},
	    {"only", required_argument, NULL, 'o'},
	    {"root", required_argument, NULL, 'r'},
	    {"plugstack", required_argument, NULL, PLUGSTACK},
	    {"config", required_argument, NULL, CONFIG},
	    {"said-in", required_argument, NULL, SAID_IN},
	    {"node-program", required_argument, NULL, NODE_PROGRAM},
	    {"record-dir", required_argument, NULL, RECORD_DIR},
	    {"run-dir", required_argument, NULL, RUN_DIR},
	    {"bpf", required_argument, NULL, BPF},
	    {"spool-dir", required_argument, NULL, SPOOL_DIR},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	static const struct sy_command_line line = {"doctor", help, table, parse_option};
	static struct arguments arguments = {.doctor = {.dir = "/", .spool_dir = SY_SPOOL_DIR}};
	struct sy_error err = {""};
	int code = sy_command_read(&line, argc, argv, &arguments);

	if (code >= 0)
		return code;
	if (optind < argc)
		return sy_command_usage(help);
	arguments.doctor.root = sy_root_open(arguments.doctor.dir, &err);
	if (arguments.doctor.root < 0) {
		(void)fprintf(stderr, "steelyard-node doctor: %s\n", err.text);
		return SY_EXIT_USAGE;
	}
	set_up(&arguments);
	run_checks(&arguments.doctor);
	return print_result(&arguments);
}
