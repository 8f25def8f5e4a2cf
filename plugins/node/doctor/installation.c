/* The installed files that a scheduler loads and starts on this node, and their releases.
 *
 * A plugin that cannot be loaded here, since its functions of Slurm are bound at once (packages are
 * linked with -z now), has its release read from the file. */
#include "doctor/doctor.h"

#include "base/exec.h"
#include "base/file.h"
#include "doctor/elf_constant.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAME	   "plugin"
#define ACCOUNTING "steelyard-slurmdb"

static const char *read_own_path(char path[SY_PATH_SIZE])
{
	ssize_t length = readlink("/proc/self/exe", path, SY_PATH_SIZE - 1);

	path[length > 0 ? length : 0] = '\0';
	return path;
}

static bool join_sibling(const char *program, const char *name, char path[SY_PATH_SIZE])
{
	const char *slash = strrchr(program, '/');

	(void)snprintf(path, SY_PATH_SIZE, "%s", name);
	if (!slash)
		return false;
	(void)snprintf(path, SY_PATH_SIZE, "%.*s/%s", (int)(slash - program), program, name);
	return access(path, X_OK) == 0;
}

bool sy_doctor_find_sibling(const struct sy_doctor *doctor, const char *name,
			    char path[SY_PATH_SIZE])
{
	char own[SY_PATH_SIZE];

	return join_sibling(doctor->config.node_program, name, path) ||
	       join_sibling(read_own_path(own), name, path);
}

/* The version that a program prints, without its newline; "" when the program does not run. */
static void read_version(const char *program, const char *option, char *version, size_t size)
{
	const char *const argv[] = {program, option, NULL};
	struct sy_error err;
	cleanup_free char *text = sy_run_text(argv, NULL, &err);

	(void)snprintf(version, size, "%.*s", text ? (int)strcspn(text, "\n") : 0,
		       text ? text : "");
}

/* The program that measures jobs, where it is not this one. */
static void report_jobs_program(struct sy_doctor *doctor, const char *program)
{
	const char *name = "program of jobs";
	char version[128];

	read_version(program, "--version", version, sizeof(version));
	if (!version[0])
		sy_doctor_add(doctor, name, SY_MISSING,
			      "install it there, or let node_program= name where it is: else jobs "
			      "run unweighed",
			      "node_program=%s of %s does not run", program, doctor->setup_file);
	else if (strcmp(version, "steelyard-node " SY_VERSION) != 0)
		sy_doctor_add(doctor, name, SY_WARNING,
			      "install one release of Steelyard on all nodes",
			      "%s at %s; this one is " SY_VERSION, version, program);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%s at %s", version, program);
}

void sy_doctor_check_programs(struct sy_doctor *doctor)
{
	const char *used = doctor->config.node_program;
	char own[SY_PATH_SIZE];

	sy_doctor_add(doctor, "node program", SY_OK, "", "steelyard-node %s at %s", SY_VERSION,
		      read_own_path(own));
	if (used[0] && strcmp(used, own) != 0)
		report_jobs_program(doctor, used);
}

/* Functions that only slurmstepd has. */
static bool is_of_slurm(const char *linker_error)
{
	return strstr(linker_error, "undefined symbol: slurm_") ||
	       strstr(linker_error, "undefined symbol: spank_");
}

/* dlopen(3)'s error for a file, from a separate process, since a truncated library kills the
 * process that loads it. slurmstepd's functions are bound when they are called, so the file loads
 * here, too. A package's file, where all is bound at once, is read instead. */
static int load(const void *path, int out)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	const unsigned *release = library ? dlsym(library, "plugin_version") : NULL;
	const char *message = library ? "it has no plugin_version" : dlerror();
	unsigned written = release ? *release : 0;
	char text[32];

	if (!library && is_of_slurm(message))
		(void)sy_read_elf_constant(path, "plugin_version", &written);
	(void)snprintf(text, sizeof(text), "release %u", written);
	return sy_write_all(out, written ? text : message, strlen(written ? text : message));
}

/* The plugin's release as SLURM_VERSION_NUMBER, or 0 and the linker's message. */
static unsigned read_release(const char *path, char *message, size_t size)
{
	struct sy_error err;
	cleanup_free char *text = sy_run_function(SY_EXEC_TIMEOUT_MS, load, path, &err);
	unsigned release = 0;

	if (text)
		(void)snprintf(message, size, "%s", text);
	else
		(void)snprintf(message, size, "%.400s: is it cut short?", err.text);
	(void)sscanf(message, "release %u", &release);
	return release;
}

/* The release of `slurmd -V` ("slurm 22.05.8") as SLURM_VERSION_NUMBER; 0: slurmd is not
 * installed. */
static unsigned read_slurmd_release(void)
{
	unsigned major, minor, micro;
	char text[128];

	read_version("slurmd", "-V", text, sizeof(text));
	if (sscanf(text, "slurm%*[^0-9]%u.%u.%u", &major, &minor, &micro) != 3)
		return 0;
	return major << 16 | minor << 8 | micro;
}

static void report_release(struct sy_doctor *doctor, unsigned release)
{
	unsigned slurmd_release = read_slurmd_release();
	char text[32], daemon[48] = "slurmd is not here, so not compared";

	(void)snprintf(text, sizeof(text), "%u.%02u.%u", release >> 16, release >> 8 & 255,
		       release & 255);
	if (slurmd_release)
		(void)snprintf(daemon, sizeof(daemon), "slurmd here is %u.%02u.%u",
			       slurmd_release >> 16, slurmd_release >> 8 & 255,
			       slurmd_release & 255);
	/* Slurm compares the major release alone. */
	if (slurmd_release && slurmd_release >> 8 != release >> 8)
		sy_doctor_add(doctor, NAME, SY_MISSING,
			      "install the plugin that was built for this release: "
			      "docs/admin.md, \"Upgrading, and going back\"",
			      "%s was built for Slurm %s, %s: Slurm does not load it",
			      doctor->plugin, text, daemon);
	else
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s loads, built for Slurm %s; %s",
			      doctor->plugin, text, daemon);
}

/* Whether the program that the plugin starts at a job's end is installed with the libraries it
 * needs. */
static void report_accounting(struct sy_doctor *doctor)
{
	static const char advice[] =
	    "install it beside steelyard-node, with libslurm (docs/admin.md): else AdminComment "
	    "stays empty until `steelyard publish`, and no job is known to be alone on its node";
	char program[SY_PATH_SIZE], line[128];

	if (!join_sibling(doctor->config.node_program, ACCOUNTING, program)) {
		sy_doctor_add(doctor, "accounting", SY_WARNING, advice, "%s is missing", program);
		return;
	}
	read_version(program, "--help", line, sizeof(line));
	if (line[0])
		sy_doctor_add(doctor, "accounting", SY_OK, "", "%s writes AdminComment", program);
	else
		sy_doctor_add(doctor, "accounting", SY_WARNING, advice, "%s does not run", program);
}

void sy_doctor_check_plugin(struct sy_doctor *doctor)
{
	char message[512];
	unsigned release;

	if (doctor->plugin[0] && doctor->is_machine && sy_doctor_is_selected(doctor, "accounting"))
		report_accounting(doctor);
	if (!doctor->plugin[0] || !sy_doctor_is_selected(doctor, NAME))
		return;
	if (doctor->plugin[0] != '/') {
		sy_doctor_add(doctor, NAME, SY_OK, "",
			      "%s is looked for in Slurm's PluginDir: not looked at",
			      doctor->plugin);
		return;
	}
	release = read_release(doctor->plugin, message, sizeof(message));
	if (release)
		report_release(doctor, release);
	else if (is_of_slurm(message))
		sy_doctor_add(doctor, NAME, SY_WARNING, "",
			      "%s: its release of Slurm cannot be read from the file",
			      doctor->plugin);
	else
		sy_doctor_add(doctor, NAME, SY_MISSING,
			      "install it: docs/admin.md; it needs libjansson and libmnl",
			      "%s does not load: %s", doctor->plugin, message);
}
