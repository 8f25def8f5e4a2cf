/* What network conditions need on this node; all of it may be missing. */
#include "doctor/doctor.h"

#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/delay_tables.h"
#include "netem/netem.h"
#include "netem/policy/policy.h"
#include "netem/policy/policy_fields.h"
#include "netem/sites_file.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define SITES "netem sites"
#define SUM   12 /* digits of a file's checksum: enough to distinguish two */

/* One file of sites (docs/netem.md), as a job on this node would get it. The file and its report
 * are the same on all nodes. */
static int read_sites(const char *path, char *text, size_t size, struct sy_error *err)
{
	const char *file = strrchr(path, '/') + 1;
	size_t used = strlen(text);
	struct sy_own_addresses own;
	struct sy_sites sites;
	char name[256];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
	if (sy_own_addresses_read(&own, err) < 0 ||
	    sy_sites_read(SY_TABLES, name, &own, &sites, err) < 0)
		return -1;
	(void)snprintf(text + used, size - used, "%s%s (sha256 %.*s)", used ? ", " : "", name, SUM,
		       sites.sha256);
	return 0;
}

static void report_sites(struct sy_doctor *doctor)
{
	struct sy_error err = {""};
	char text[1024] = "";
	glob_t found = {0};
	int good = 0;

	if (!doctor->is_machine || glob(SY_TABLES "/*.sites", 0, NULL, &found) != 0)
		return globfree(&found);
	for (size_t i = 0; i < found.gl_pathc && good == 0; i++)
		good = read_sites(found.gl_pathv[i], text, sizeof(text), &err);
	if (good < 0)
		sy_doctor_add(doctor, SITES, SY_WARNING,
			      "jobs that ask for it are refused here: docs/netem.md", "%s",
			      err.text);
	else
		sy_doctor_add(doctor, SITES, SY_OK, "", "this node is in a site of %s", text);
	globfree(&found);
}

#define PAGE "docs/netem.md"
#define MOST 16 /* words of a trial */

struct trial {
	const char *module, *command;
};

static const struct trial trials[] = {
#define TRIAL(module, command) {#module, command},
#include "facts/netem_trials.def"
#undef TRIAL
};

enum answer { NOT_TRIED, IS_MISSING, EXISTS };

/* The kernel's own words: 'Specified qdisc kind is unknown.', and of a device 'Unknown device
 * type'.
 */
static bool is_unknown(const char *message)
{
	return strstr(message, "is unknown") || strstr(message, "Unknown device type");
}

/* The trial has a network namespace of its own. An ordinary user needs a user namespace for
 * that. */
static enum answer run_trial(const struct trial *trial, bool as_root, struct sy_error *err)
{
	const char *argv[MOST + 8] = {"unshare"};
	cleanup_output struct sy_output output = {0};
	char command[128], *rest = NULL;
	int count = 1, ran;

	(void)snprintf(command, sizeof(command), "%s", trial->command);
	if (!as_root) {
		argv[count++] = "--user";
		argv[count++] = "--map-root-user";
	}
	argv[count++] = "--net";
	argv[count++] = "--";
	for (char *word = strtok_r(command, " ", &rest); word && count < MOST + 7;
	     word = strtok_r(NULL, " ", &rest))
		argv[count++] = word;
	sy_run_pass_variable(
	    "PATH=/usr/sbin:/sbin:/usr/bin:/bin"); /* unshare's, to find the other */
	ran = sy_run(argv, NULL, &output, err);
	sy_run_pass_variable(NULL);
	if (ran < 0)
		return NOT_TRIED;
	if (output.status == 0)
		return EXISTS;
	if (is_unknown(output.problem)) {
		(void)sy_fail(err,
			      "this kernel has no %s: modprobe it, or boot a kernel that has it "
			      "(Debian's linux-image packages do)",
			      trial->module);
		return IS_MISSING;
	}
	(void)sy_fail(err, "could not be tried as this user: %.*s",
		      (int)strcspn(output.problem, "\n"), output.problem);
	return NOT_TRIED;
}

static void report_kernel(struct sy_doctor *doctor)
{
	static const char *const state_names[] = {"could not be tried", "is missing", "is there"};
	char message[256] = "", advice[640] = "";
	struct sy_error err = {""};

	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		enum answer answer = run_trial(&trials[i], doctor->as_root, &err);
		size_t length = strlen(message);

		(void)snprintf(message + length, sizeof(message) - length, "%s%s %s", i ? ", " : "",
			       trials[i].module, state_names[answer]);
		if (answer != EXISTS && !advice[0])
			(void)snprintf(advice, sizeof(advice), "%s; without it: " PAGE, err.text);
	}
	sy_doctor_add(doctor, "netem kernel", advice[0] ? SY_WARNING : SY_OK, advice, "%s",
		      message);
}

static void report_programs(struct sy_doctor *doctor)
{
	const char *const argv[] = {"tc", "-V", NULL};
	cleanup_output struct sy_output output = {0};
	struct sy_error err = {""};

	if (sy_run(argv, NULL, &output, &err) < 0)
		sy_doctor_add(doctor, "netem programs", SY_WARNING, "apt install iproute2",
			      "tc not found: no network conditions");
	else
		sy_doctor_add(doctor, "netem programs", SY_OK, "", "%.*s",
			      (int)strcspn(output.out, "\n"), output.out);
}

/* Checked as strictly as for a job. */
static void report_policy(struct sy_doctor *doctor)
{
	const char *name = "netem policy", *path = doctor->config.netem_policy;
	struct sy_error err = {""};
	struct sy_policy *policy = sy_policy_read(path, true, &err);

	if (!policy)
		sy_doctor_add(doctor, name, SY_WARNING, "its lines are explained in " PAGE, "%s",
			      err.text);
	else if (!policy->exists)
		sy_doctor_add(doctor, name, SY_WARNING, "an admin allows them: " PAGE,
			      "%s is not there: no job gets network conditions", path);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%s: network conditions %s, cold caches %s",
			      path, policy->enabled && policy->netem ? "yes" : "no",
			      policy->enabled && policy->cache ? "yes" : "no");
	sy_policy_free(policy);
}

/* Count jobs whose owner has ended without undoing their conditions. */
static int list_stale_jobs(const json_t *states, char *jobs, size_t size)
{
	json_t *state;
	int stale = 0;
	size_t i;

	jobs[0] = '\0';
	json_array_foreach((json_t *)states, i, state)
	{
		const char *job = json_string_value(json_object_get(state, "job_id"));
		size_t length = strlen(jobs);

		if (json_is_true(json_object_get(state, "stale")))
			(void)snprintf(jobs + length, size - length, "%s%s", stale++ ? ", " : "",
				       job ? job : "?");
	}
	return stale;
}

static void report_states(struct sy_doctor *doctor)
{
	const char *name = "netem states", *run_dir = doctor->config.run_dir;
	struct sy_error err = {""};
	char jobs[256];
	json_t *states;
	int stale;

	if (access(run_dir, F_OK) < 0) {
		sy_doctor_add(doctor, name, SY_OK, "", "none: %s is not there", run_dir);
		return;
	}
	states = sy_netem_list_states(run_dir, &err);
	if (!states) {
		sy_doctor_add(doctor, name, SY_WARNING, "look again as root: only root may",
			      "not known: %s", err.text);
		return;
	}
	stale = list_stale_jobs(states, jobs, sizeof(jobs));
	if (stale)
		sy_doctor_add(doctor, name, SY_WARNING,
			      "the next job on this node undoes them; now, as root: "
			      "steelyard-node netem clear --run-dir RUN_DIR --all",
			      "%d left behind, of job %s", stale, jobs);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%zu hold, none was left behind",
			      json_array_size(states));
	json_decref(states);
}

void sy_doctor_check_network(struct sy_doctor *doctor)
{
	if (sy_doctor_is_selected(doctor, "netem programs"))
		report_programs(doctor);
	if (sy_doctor_is_selected(doctor, "netem kernel"))
		report_kernel(doctor);
	if (sy_doctor_is_selected(doctor, "netem policy"))
		report_policy(doctor);
	if (sy_doctor_is_selected(doctor, "netem sites"))
		report_sites(doctor);
	if (sy_doctor_is_selected(doctor, "netem states"))
		report_states(doctor);
}
