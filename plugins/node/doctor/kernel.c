/* What this kernel counts of jobs: cgroups, and steelyard-bpf. */
#include "doctor/doctor.h"

#include "base/exec.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define NAME "kernel counts"
#define LOST "I/O of processes that no sample sees and nobody waits for is lost"

static bool has_controller(int root, const char *word)
{
	char text[512];
	char *rest = NULL;

	if (sy_read_line_at(root, "/sys/fs/cgroup/cgroup.controllers", text, sizeof(text)) < 0)
		return false;
	for (char *one = strtok_r(text, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
		if (!strcmp(one, word))
			return true;
	return false;
}

static bool is_there(int root, const char *path)
{
	int fd = sy_open_at(root, path);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

void sy_doctor_check_cgroups(struct sy_doctor *doctor)
{
	const char *name = "cgroups";
	int root = doctor->root;

	if (is_there(root, "/sys/fs/cgroup/cgroup.controllers")) {
		bool cpu = has_controller(root, "cpu"), memory = has_controller(root, "memory");

		sy_doctor_add(doctor, name, SY_OK, "", "version 2%s%s",
			      cpu ? "" : ", without the controller cpu",
			      memory ? "" : ", without the controller memory");
	} else if (is_there(root, "/sys/fs/cgroup/cpuacct/cpuacct.usage") ||
		   is_there(root, "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage")) {
		sy_doctor_add(doctor, name, SY_OK, "", "version 1");
	} else {
		sy_doctor_add(
		    doctor, name, SY_OK,
		    "nothing to do: with cgroups (proctrack/cgroup, jobacct_gather/cgroup) "
		    "processes between two samples are counted, too",
		    "none: CPU and memory of a job come from its processes");
	}
}

/* What `steelyard-bpf status` says, or NULL with why not. */
static json_t *ask(const char *program, struct sy_error *err)
{
	const char *const argv[] = {program, "status", "--json", NULL};
	cleanup_output struct sy_output output = {0};
	json_t *said;

	if (sy_run(argv, NULL, &output, err) < 0)
		return NULL;
	said = json_loads(output.out, 0, NULL);
	if (!json_is_object(said))
		(void)sy_fail(err, "%s does not answer: %.*s", program,
			      (int)strcspn(output.problem, "\n"), output.problem);
	return said;
}

static bool is(const json_t *said, const char *key)
{
	return json_is_true(json_object_get(said, key));
}

/* What it lacks it says itself. */
static void say_able(struct sy_doctor *doctor, const json_t *said)
{
	const char *says = json_string_value(json_object_get(said, "says"));
	char advice[SY_PATH_SIZE + 64];

	if (doctor->config.bpf) {
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s; bpf=yes: of jobs, too",
			      says ? says : "");
		return;
	}
	(void)snprintf(advice, sizeof(advice), "take bpf=no out of %s: docs/sampler.md",
		       doctor->setup_file);
	sy_doctor_add(doctor, NAME, SY_OK, advice, "%s; bpf=no: " LOST, says ? says : "");
}

static void say_unable(struct sy_doctor *doctor, const json_t *said, const char *why)
{
	const char *says = json_string_value(json_object_get(said, "says"));
	bool tried = is(said, "root");
	const char *setting = doctor->config.bpf ? "yes" : "no";

	if (said && !tried)
		sy_doctor_add(doctor, NAME, SY_OK, "look again as root",
			      "not known: only root can try; bpf=%s: " LOST, setting);
	else
		sy_doctor_add(doctor, NAME, doctor->config.bpf ? SY_WARNING : SY_OK,
			      said ? "Linux 5.17 or later, with BTF: docs/sampler.md"
				   : "build it with libbpf-dev and clang: make all, and install it",
			      "%s; bpf=%s: " LOST, says ? says : why, setting);
}

void sy_doctor_check_kernel_counts(struct sy_doctor *doctor)
{
	struct sy_error err = {"steelyard-bpf was not found"};
	char program[SY_PATH_SIZE];
	json_t *said = NULL;

	if (!sy_doctor_is_selected(doctor, NAME))
		return;
	if (sy_doctor_find_sibling(doctor, "steelyard-bpf", program))
		said = ask(program, &err);
	if (said && is(said, "able"))
		say_able(doctor, said);
	else
		say_unable(doctor, said, err.text);
	json_decref(said);
}
