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

static bool exists(int root, const char *path)
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

	if (exists(root, "/sys/fs/cgroup/cgroup.controllers")) {
		bool cpu = has_controller(root, "cpu"), memory = has_controller(root, "memory");

		sy_doctor_add(doctor, name, SY_OK, "", "version 2%s%s",
			      cpu ? "" : ", without the controller cpu",
			      memory ? "" : ", without the controller memory");
	} else if (exists(root, "/sys/fs/cgroup/cpuacct/cpuacct.usage") ||
		   exists(root, "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage")) {
		sy_doctor_add(doctor, name, SY_OK, "", "version 1");
	} else {
		sy_doctor_add(
		    doctor, name, SY_OK,
		    "nothing to do: with cgroups (proctrack/cgroup, jobacct_gather/cgroup) "
		    "processes between two samples are counted, too",
		    "none: CPU and memory of a job come from its processes");
	}
}

/* What `steelyard-bpf status` prints, or NULL with the reason. */
static json_t *read_status(const char *program, struct sy_error *err)
{
	const char *const argv[] = {program, "status", "--json", NULL};
	cleanup_output struct sy_output output = {0};
	json_t *status;

	if (sy_run(argv, NULL, &output, err) < 0)
		return NULL;
	status = json_loads(output.out, 0, NULL);
	if (!json_is_object(status))
		(void)sy_fail(err, "%s does not answer: %.*s", program,
			      (int)strcspn(output.problem, "\n"), output.problem);
	return status;
}

static bool is(const json_t *status, const char *key)
{
	return json_is_true(json_object_get(status, key));
}

/* The message names what is missing. */
static void report_supported(struct sy_doctor *doctor, const json_t *status)
{
	const char *message = json_string_value(json_object_get(status, "message"));
	char advice[SY_PATH_SIZE + 64];

	if (doctor->config.bpf) {
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s; bpf=yes: of jobs, too",
			      message ? message : "");
		return;
	}
	(void)snprintf(advice, sizeof(advice), "take bpf=no out of %s: docs/sampler.md",
		       doctor->setup_file);
	sy_doctor_add(doctor, NAME, SY_OK, advice, "%s; bpf=no: " LOST, message ? message : "");
}

static void report_unsupported(struct sy_doctor *doctor, const json_t *status, const char *reason)
{
	const char *message = json_string_value(json_object_get(status, "message"));
	bool tried = is(status, "root");
	const char *setting = doctor->config.bpf ? "yes" : "no";

	if (status && !tried)
		sy_doctor_add(doctor, NAME, SY_OK, "look again as root",
			      "not known: only root can try; bpf=%s: " LOST, setting);
	else
		sy_doctor_add(doctor, NAME, doctor->config.bpf ? SY_WARNING : SY_OK,
			      status
				  ? "Linux 5.17 or later, with BTF: docs/sampler.md"
				  : "build it with libbpf-dev and clang: make all, and install it",
			      "%s; bpf=%s: " LOST, message ? message : reason, setting);
}

void sy_doctor_check_kernel_counts(struct sy_doctor *doctor)
{
	struct sy_error err = {"steelyard-bpf was not found"};
	char program[SY_PATH_SIZE];
	json_t *status = NULL;

	if (!sy_doctor_is_selected(doctor, NAME))
		return;
	if (sy_doctor_find_sibling(doctor, "steelyard-bpf", program))
		status = read_status(program, &err);
	if (status && is(status, "supported"))
		report_supported(doctor, status);
	else
		report_unsupported(doctor, status, err.text);
	json_decref(status);
}
