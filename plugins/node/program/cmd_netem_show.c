/* steelyard-node netem show: whose conditions are on this node. */
#include "netem/netem.h"
#include "program/commands.h"
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>
#include <time.h>

static const char help[] = "usage: steelyard-node netem show --run-dir DIR [--json]\n"
			   "\n"
			   "The network conditions on this node, and whose they are. STALE: their "
			   "owner is gone;\n"
			   "`steelyard-node netem reap` undoes those.\n"
			   "\n"
			   "  --json  as a list of documents (docs/formats.md, part 9)\n";

static const char *text_of(const json_t *state, const char *key)
{
	const char *text = json_string_value(json_object_get(state, key));

	return text ? text : "?";
}

static void print_state(const json_t *state)
{
	time_t since = (time_t)json_number_value(json_object_get(state, "start_unix_s"));
	json_t *device;
	char when[32] = "?";
	struct tm local;
	size_t i;

	if (localtime_r(&since, &local))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
	json_array_foreach(json_object_get(state, "devices"), i, device)(void)
	    printf("%-12s %-8" JSON_INTEGER_FORMAT " %-16s %-8s %-5s %-19s %-5s %s%s%s\n",
		   text_of(state, "job_id"), json_integer_value(json_object_get(state, "user_id")),
		   text_of(device, "device"), text_of(device, "direction"), text_of(state, "scope"),
		   when, json_is_true(json_object_get(state, "stale")) ? "STALE" : "no",
		   text_of(state, "requested"), json_object_get(device, "to_site") ? " to " : "",
		   json_object_get(device, "to_site") ? text_of(device, "to_site") : "");
}

static int print_table(const json_t *states)
{
	json_t *state;
	size_t i;

	if (!json_array_size(states)) {
		(void)printf("no network conditions on this node\n");
		return SY_EXIT_DONE;
	}
	(void)printf("%-12s %-8s %-16s %-8s %-5s %-19s %-5s %s\n", "JOB", "UID", "DEVICE", "WAY",
		     "SCOPE", "SINCE", "STALE", "CONDITION");
	json_array_foreach((json_t *)states, i, state) print_state(state);
	return SY_EXIT_DONE;
}

static int show(const char *run_dir, bool as_json)
{
	struct sy_error err = {{0}};
	json_t *states = sy_netem_list_states(run_dir, &err);
	int code;

	if (!states) {
		(void)fprintf(stderr, "steelyard-node netem show: %s\n", err.text);
		return SY_EXIT_CONDITION;
	}
	if (as_json)
		return sy_command_print("netem show", states);
	code = print_table(states);
	json_decref(states);
	return fflush(stdout) ? SY_EXIT_BUG : code;
}

int sy_netem_show_command(int argc, char **argv)
{
	static const struct option table[] = {{"run-dir", required_argument, NULL, 'r'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	const char *run_dir = NULL;
	bool as_json = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (option == 'r')
			run_dir = optarg;
		else if (option == 'j')
			as_json = true;
		else
			return option == 'h' ? sy_command_help(help) : sy_command_usage(help);
	}
	if (run_dir && optind == argc)
		return show(run_dir, as_json);
	return sy_command_usage(help);
}
